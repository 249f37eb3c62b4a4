package voice

// left is how many phrases each folder at the top still has.
func left() map[string]int {
	return map[string]int{
		"sim":  55,
		"test": 4,
	}
}
