/** One change of a text, of all there are. */
import type { Random } from './random.ts'
import { EDITS } from './text-edits.ts'
import { ENCODINGS, NUMBERS } from './text-encodings.ts'
import { SPELLINGS } from './text-spellings.ts'

const ANY = [EDITS, SPELLINGS, ENCODINGS].flatMap((mutations) => Object.entries(mutations))
/** The few that are made for numbers are as likely as others. */
const ANY_OF_NUMBER = [...ANY, ...[NUMBERS, NUMBERS, NUMBERS].flatMap((mutations) => Object.entries(mutations))]

/** A change of `value`, and what it is called; it may happen to change nothing. */
export function mutateText(value: string, random: Random, donor: string): { readonly name: string; readonly value: string } {
  const [name, mutate] = random.pick(/^\d+$/.test(value) ? ANY_OF_NUMBER : ANY)
  return { name, value: mutate(value, random, donor) }
}
