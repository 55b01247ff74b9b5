/** The messages of a session whose words their writers changed after the turn had begun: they are not answered again with the old words. */
import { type OwnedStore, sessionKeys } from '@sluice/sdk'
import * as v from 'valibot'
import { updateValue } from './update-value.ts'

const OWNER = 'delivery'
/** More than the turns in which a message is looked for that is answered again. */
const NUMBERS_MAX = 200

const numbersSchema = v.fallback(v.array(v.number()), [])
const keyOf = (session: string): string => `${sessionKeys(session)}changed`

/** Records that the stored words of a message are no longer those of its writer. */
export async function keepChanged(owned: OwnedStore, session: string, number: number): Promise<void> {
  await updateValue(owned.keyValue(OWNER), keyOf(session), (value) => {
    const numbers = v.parse(numbersSchema, value)
    return numbers.includes(number) ? value : [...numbers, number].slice(-NUMBERS_MAX)
  })
}

/** Whether the writer of a message has edited or deleted it, or a piece of it, since its turn began. */
export const hasChanged = async (owned: OwnedStore, session: string, number: number): Promise<boolean> =>
  v.parse(numbersSchema, await owned.keyValue(OWNER).get(keyOf(session))).includes(number)
