"""Compiled and bit-level loops: arrays in, arrays out, no checks, no classes."""
