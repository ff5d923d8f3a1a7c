"""The short way to the wires that carry most traffic, without litellm."""
