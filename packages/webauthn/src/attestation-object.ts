/** Reads attestation objects without their attestation, because the gateway accepts every make of authenticator. */
import { endOfItem, MAJOR, readHead } from './cbor-item.ts'

const MEMBERS = 3

/**
 * Returns the authenticator data of an attestation object. Returns undefined unless the bytes are exactly one CBOR map of
 * `fmt`, `attStmt` and `authData`, each of its type and present once.
 */
export function authenticatorDataIn(object: Uint8Array): Uint8Array | undefined {
  try {
    return read(object)
  } catch (error) {
    if (error instanceof RangeError) return undefined
    throw error
  }
}

function read(object: Uint8Array): Uint8Array | undefined {
  const map = readHead(object, 0)
  if (map.major !== MAJOR.map || map.value !== MEMBERS) return undefined
  const members = new Map<string, { readonly major: number; readonly content: Uint8Array }>()
  let at = map.next
  for (let member = 0; member < MEMBERS; member++) {
    const key = readHead(object, at)
    if (key.major !== MAJOR.text) return undefined
    const start = endOfItem(object, at)
    const name = Buffer.from(object.subarray(key.next, start)).toString('utf8')
    const { major, next } = readHead(object, start)
    at = endOfItem(object, start)
    members.set(name, { major, content: object.subarray(next, at) })
  }
  const data = members.get('authData')
  const isWhole =
    at === object.length &&
    members.get('fmt')?.major === MAJOR.text &&
    members.get('attStmt')?.major === MAJOR.map &&
    data?.major === MAJOR.bytes
  return isWhole ? data.content : undefined
}

/** Builds an attestation object of the format `none` around authenticator data. */
export const unattested = (authenticatorData: Uint8Array): Buffer =>
  Buffer.concat([
    Buffer.from([0xa3]),
    cborText('fmt'),
    cborText('none'),
    cborText('attStmt'),
    Buffer.from([0xa0]),
    cborText('authData'),
    Buffer.from([0x5a, 0, 0, authenticatorData.length >> 8, authenticatorData.length & 0xff]),
    authenticatorData,
  ])

/** Encodes a text of at most 23 ASCII characters. */
const cborText = (text: string): Buffer => Buffer.from([0x60 + text.length, ...Buffer.from(text)])
