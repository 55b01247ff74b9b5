/** Applies one random change to a text. */
import type { Random } from '@sluice/testkit/random'
import { EDITS } from './text-edits.ts'
import { ENCODINGS, NUMBERS } from './text-encodings.ts'
import { SPELLINGS } from './text-spellings.ts'

const ANY = [EDITS, SPELLINGS, ENCODINGS].flatMap((mutations) => Object.entries(mutations))
/** The few changes for numbers are listed three times to be as likely as the others. */
const ANY_OF_NUMBER = [...ANY, ...[NUMBERS, NUMBERS, NUMBERS].flatMap((mutations) => Object.entries(mutations))]

/** Returns a changed value and the name of the change, which may by chance have no effect. */
export function mutateText(value: string, random: Random, donor: string): { readonly name: string; readonly value: string } {
  const [name, mutate] = random.pick(/^\d+$/.test(value) ? ANY_OF_NUMBER : ANY)
  return { name, value: mutate(value, random, donor) }
}
