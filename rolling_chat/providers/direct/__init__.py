"""Direct requests to the most common APIs, without litellm."""
