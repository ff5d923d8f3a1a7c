"""What happens behind the screen: turns, commands, the prompt history, the gauge's figures."""
