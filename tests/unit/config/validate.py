"""Holds YAML files against a JSON Schema: validate.py SCHEMA FILE...

One line a complaint: where, and the keyword of the schema that complains. Exit 1 where there are any.
"""
import json
import sys

import jsonschema
import yaml

with open(sys.argv[1], encoding="utf-8") as file:
    schema = json.load(file)
jsonschema.Draft202012Validator.check_schema(schema)
complaints = []
for path in sys.argv[2:]:
    with open(path, encoding="utf-8") as file:
        document = yaml.safe_load(file)
    for error in jsonschema.Draft202012Validator(schema).iter_errors(document):
        where = ".".join(str(step) for step in error.absolute_path)
        complaints.append(f"{where}: {error.validator}")
for complaint in sorted(complaints):
    print(complaint)
sys.exit(1 if complaints else 0)
