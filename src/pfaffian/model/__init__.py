"""The description of a mechanism as frozen, validated data, without equations of motion."""
