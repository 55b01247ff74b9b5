/** Short keys for rows that are known by texts of any length. */
import { hash } from 'node:crypto'

const KEY_BYTES = 16

/** JSON keeps the texts apart, whatever is in them. */
export const idOf = (...texts: readonly string[]): string => JSON.stringify(texts)

/** Half of the digest is enough, and makes half of the index. */
export const keyOf = (id: string): Buffer => hash('sha256', id, 'buffer').subarray(0, KEY_BYTES)
