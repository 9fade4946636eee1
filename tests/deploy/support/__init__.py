"""What the tests of tests/deploy share: processes, charts, pipeline files."""
