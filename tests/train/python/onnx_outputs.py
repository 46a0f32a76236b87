"""onnx_outputs.py MODEL X Y: checks the model and prints the largest difference between what onnxruntime makes of the
samples X (at once, and one by one) and the outputs Y, as a fraction of the largest output."""
import sys

import numpy
import onnx
import onnxruntime

model, x, y = sys.argv[1], numpy.load(sys.argv[2]), numpy.load(sys.argv[3])
onnx.checker.check_model(model, full_check=True)
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = 1
session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
assert session.get_inputs()[0].shape[0] == "batch", session.get_inputs()[0].shape
at_once = session.run(["output"], {"input": x})[0]
one_by_one = numpy.concatenate([session.run(["output"], {"input": x[i : i + 1]})[0] for i in range(len(x))])
assert at_once.shape == y.shape, (at_once.shape, y.shape)
scale = max(1e-30, float(numpy.abs(y).max()))
print(max(float(numpy.abs(found - y).max()) for found in (at_once, one_by_one)) / scale)
