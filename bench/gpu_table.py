#!/usr/bin/env python3
"""bench/gpu_check's table: training on one GPU beside PyTorch, our plans beside what library and memory can do.

--results FILE prints the table of earlier measurements. --tiny: sizes for a test of this program on a simulated GPU.
"""
import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from harness import ROOT, Failed, end_group, end_politely_when_told, last_json, machine, run_all

# Name in the table, case, torch's case, batch, options of ours, timed steps on a GPU.
CASES = [("MLP 2-30-20-2, fp32, batch 32", "mlp", "mlp", 32, [], 4000),
         ("ConvNet (MNIST), bf16, batch 512", "convnet", "convnet-bf16", 512, ["train.precision=bf16"], 400),
         ("ResNet-50, 224 x 224, bf16, batch 128", "resnet50", "resnet50-bf16", 128, [], 60)]
# On a simulated GPU, whose time means nothing.
TINY = {"mlp": [], "convnet": ["train.batch_size=2"],
        "resnet50": ["train.batch_size=2", "data.train.samples=4", "data.train.shape=[3,32,32]"]}
TINY_RATES = ["--batch", 8, "--features", 16, "--floats", 4096, "--repeats", 2]
SAMPLING_MS = 100


class BusySamples:
    """What nvidia-smi says of a GPU while something runs: the percentage of the last fraction of a second in which a
    kernel ran, with the time at which it said so."""

    def __init__(self):
        self.samples, self.process = [], None

    def __enter__(self):
        command = ["nvidia-smi", "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits",
                   f"--loop-ms={SAMPLING_MS}", "--id=" + os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0]]
        with contextlib.suppress(FileNotFoundError):
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                            start_new_session=True)
            threading.Thread(target=self.read, daemon=True).start()
        return self

    def read(self):
        for line in self.process.stdout:
            with contextlib.suppress(ValueError):
                self.samples.append((time.monotonic(), float(line)))

    def __exit__(self, *_):
        if self.process is not None:
            end_group(self.process)

    def between(self, begin, end):
        """The median, empty where nothing was sampled. A sample looks back up to a second, so the first ones of a long
        run do not count."""
        begin += min(1.0, (end - begin) / 2)
        values = [value for at, value in self.samples if begin <= at <= end]
        return statistics.median(values) if values else None


def our_step(program, case, overrides, counts, limit):
    """bench_step's JSON line, and the share of the timed steps in which the GPU was busy."""
    command = [program, ROOT / f"bench/cases/{case}.yaml", "--mark", *counts]
    for override in ["device.kind=cuda", *overrides]:
        command += ["--set", override]
    marks, output = {}, []
    with BusySamples() as busy, tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, stderr=errors, text=True,
                                   cwd=ROOT, stdin=subprocess.DEVNULL, start_new_session=True)
        late = threading.Timer(limit, end_group, [process])
        late.start()
        try:
            for line in process.stdout:
                output.append(line)
                if line.startswith("steady steps: "):
                    marks[line.split(": ")[1].strip()] = time.monotonic()
            process.wait()
        finally:
            late.cancel()
            end_group(process)
        if process.returncode != 0:
            errors.seek(0)
            raise Failed(f"bench_step {case}: exit code {process.returncode}\n{errors.read().strip()[-600:]}")
    result = last_json("".join(output))
    result["busy_percent"] = busy.between(marks["begin"], marks["end"])
    return result


def torch_step(python, case, batch, compiled, steps, device, limit):
    command = [python, ROOT / "bench/torch_step.py", case, "--data", ROOT / "datasets/mnist", "--device", device, "--batch", batch,
               "--warmup", max(3, steps // 10), "--steps", steps, "--blocks", 10, *(["--compile"] if compiled else [])]
    return last_json(run_all([command], limit)[0])


def attempt(results, what, measure):
    """The measurement, or None with the reason among the notes."""
    try:
        return measure()
    except Failed as failure:
        results["notes"].append(f"{what}: {str(failure).strip().splitlines()[0]}: {str(failure).strip().splitlines()[-1]}")
        return None


def measure(options):
    end = time.monotonic() + options.seconds
    results = {"machine": machine(), "simulated": options.simulated, "rows": [], "notes": []}

    def limit(most):
        left = end - time.monotonic()
        if left < 5:
            raise Failed(f"no time was left of {options.seconds:.0f} s")
        return min(most, left)

    suffix = "_simulated" if options.simulated else ""
    folder = options.build / ("tests/sim" if options.simulated else "bench")
    results["rates"] = attempt(results, "rates", lambda: last_json(
        run_all([[folder / f"bench_gpu{suffix}", *(TINY_RATES if options.tiny else [])]], limit(60))[0]))
    for name, case, torch_case, batch, overrides, steps in CASES:
        overrides = [*overrides, *(TINY[case] if options.tiny else [f"train.batch_size={batch}"])]
        steps = 1 if options.tiny else steps
        counts = ["--warmup", 0 if options.tiny else max(5, steps // 10), "--steps", steps, "--blocks", min(10, steps)]
        row = {"name": name + " (tiny)" * options.tiny, "ours": None, "eager": None, "compiled": None}
        results["rows"].append(row)
        row["ours"] = attempt(results, name, lambda: our_step(folder / f"bench_step{suffix}", case, overrides, counts, limit(120)))
        for kind in ("eager", "compiled") if options.torch else ():
            row[kind] = attempt(results, f"{name}, torch {kind}", lambda: torch_step(
                options.torch, torch_case, row["ours"]["batch"] if row["ours"] else batch, kind == "compiled",
                max(10, steps // 4), options.torch_device, limit(60)))
    return results


def number(value, form):
    return "-" if value is None else format(value, form)


def step_lines(rows):
    version = next((row[kind]["torch"] for row in rows for kind in ("eager", "compiled") if row[kind]), None)
    torch = f"torch {version}" if version else "torch"
    yield (f"{'training on one GPU':<46} {'us/step':>10} {'samples/s':>11} {'GPU busy':>8} {torch + ' eager':>22} {'ours / eager':>12}"
           f" {'compiled':>11} {'ours / compiled':>15}")
    for row in rows:
        ours, eager, compiled = row["ours"], row["eager"], row["compiled"]
        rate = ours and ours["samples_per_second"]
        busy = ours and ours["busy_percent"]

        def beside(theirs):
            return rate / theirs["samples_per_second"] if rate and theirs else None

        yield (f"{row['name']:<46} {number(ours and ours['us_per_step']['median'], '.1f'):>10} {number(rate, '.0f'):>11}"
               f" {number(busy, '.0f') + (' %' if busy is not None else ''):>8} {number(eager and eager['samples_per_second'], '.0f'):>22}"
               f" {number(beside(eager), '.2f'):>12} {number(compiled and compiled['samples_per_second'], '.0f'):>11}"
               f" {number(beside(compiled), '.2f'):>15}")


def rate_lines(rates):
    linear, update = rates["linear"], rates["update"]
    yield (f"{'linear {0} x {1} -> {2}, {3}'.format(linear['batch'], linear['in'], linear['out'], linear['type']):<46}"
           f" {'TFLOP/s':>10} {'cuBLASLt alone':>15} {'share':>8}")
    for key in ("forward", "input_gradient", "weight_gradient"):
        ours, alone = linear[key]["tflops"], linear[key]["library_tflops"]
        yield f"{key.replace('_', ' '):<46} {ours:>10.1f} {alone:>15.1f} {100 * ours / alone:>6.0f} %"
    yield ""
    yield f"{'update of {0} parameters'.format(update['floats']):<46} {'GB/s':>10} {'a copy':>15} {'share':>8}"
    for key, name in (("sgd_gb_s", "SGD with momentum"), ("adam_gb_s", "Adam")):
        yield f"{name:<46} {update[key]:>10.1f} {update['copy_gb_s']:>15.1f} {100 * update[key] / update['copy_gb_s']:>6.0f} %"


def table(results):
    rates = results["rates"]
    lines = [f"{results['machine']}; " + (f"{rates['gpu']}, {rates['libraries']}" if rates else "the GPU's rates are missing")]
    if results["simulated"]:
        lines.append("SIMULATED GPU: these figures say that the programs run, not how fast anything is")
    lines += ["", *step_lines(results["rows"])]
    if rates:
        lines += ["", *rate_lines(rates)]
    return "\n".join(lines + [f"note: {note}" for note in results["notes"]])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=Path, default=ROOT / "build/release", help="build directory (default: build/release)")
    parser.add_argument("--torch", metavar="PYTHON", help="a Python with PyTorch, to compare with")
    parser.add_argument("--torch-device", default="cuda", choices=["cuda", "cpu"], help="what torch computes on (default: cuda)")
    parser.add_argument("--seconds", type=float, default=170, help="that all measurements may take together")
    parser.add_argument("--save", type=Path, metavar="FILE", help="also write every measurement there")
    parser.add_argument("--results", type=Path, metavar="FILE", help="measure nothing, print what was saved")
    parser.add_argument("--simulated", action="store_true", help="the programs of tests/sim; marked as such")
    parser.add_argument("--tiny", action="store_true", help="next to no work")
    options = parser.parse_args()
    options.build = options.build.resolve()
    results = json.loads(options.results.read_text()) if options.results else measure(options)
    if options.save:
        options.save.write_text(json.dumps(results, indent=1) + "\n")
    print(table(results))
    if results["rates"] is None or any(row["ours"] is None for row in results["rows"]):
        sys.exit("bench/gpu_check: not everything could be measured")


if __name__ == "__main__":
    end_politely_when_told()
    main()
