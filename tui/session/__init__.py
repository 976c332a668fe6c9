"""The dashboard without its screen: owns the replay, takes orders, hands out frozen views. Knows no Textual."""
