"""Reads a safetensors file with nothing but the format's description: prints name, type, shape and bytes of each tensor.
usage: plain_reader.py FILE"""
import json
import struct
import sys

with open(sys.argv[1], "rb") as file:
    (length,) = struct.unpack("<Q", file.read(8))
    header = json.loads(file.read(length))
    data = file.read()
assert (8 + length) % 8 == 0, "the tensors are not aligned"
print("metadata", json.dumps(header.pop("__metadata__", {})))
for name in sorted(header):
    begin, end = header[name]["data_offsets"]
    print(name, header[name]["dtype"], json.dumps(header[name]["shape"]), data[begin:end].hex())
