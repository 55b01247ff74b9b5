/** The type of a change of a header's value or of a query. */
import type { Random } from '@sluice/testkit/random'

/** `donor` is the same part of another valid request. */
export type TextMutation = (value: string, random: Random, donor: string) => string

export type TextMutations = Readonly<Record<string, TextMutation>>

/** A random position between two characters, including both ends. */
export const placeIn = (value: string, random: Random): number => random.below(value.length + 1)
