"""What the machine is: frozen, validated data; no equations of motion."""
