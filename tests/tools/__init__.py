"""What tests share; tests/README.md says what each file is for."""
