"""Judges configs by a JSON schema, as an editor would.
usage: config_schema.py SCHEMA CONFIG...   prints a line per config: valid, or what is wrong first"""
import json
import sys

import jsonschema
from ruamel.yaml import YAML

schema = json.load(open(sys.argv[1], encoding="utf-8"))
jsonschema.Draft202012Validator.check_schema(schema)
validator = jsonschema.Draft202012Validator(schema)
for path in sys.argv[2:]:
    with open(path, encoding="utf-8") as file:
        config = YAML(typ="safe", pure=True).load(file)  # YAML 1.2: 1e-3 is a number
    errors = sorted(validator.iter_errors(config), key=lambda error: error.json_path)
    print("valid" if not errors else f"{errors[0].json_path}: {errors[0].message}"[:300].replace("\n", " "))
