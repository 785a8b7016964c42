"""Whether explanations are true: the same model is asked again without their facts, and with nothing but them."""
