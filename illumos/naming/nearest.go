package naming

// Nearest is the known word that was probably meant: the one with the fewest
// letters to add, drop, replace or swap with their neighbour, the first of
// equals. Empty if none is near: more than a third of the word would be wrong.
func Nearest(word string, known []string) string {
	best, bound := "", max(1, len([]rune(word))/3)+1
	for _, k := range known {
		if d := distance([]rune(word), []rune(k)); d < bound {
			best, bound = k, d
		}
	}
	return best
}

// distance is the number of edits between two words (optimal string alignment:
// Levenshtein's, and neighbours that changed places are one edit).
func distance(a, b []rune) int {
	older, old, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		old[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			row[j] = min(old[j]+1, row[j-1]+1, old[j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], older[j-2]+1)
			}
		}
		older, old, row = old, row, older
	}
	return old[len(b)]
}
