"""The screens: the main one, and those that open over it."""
