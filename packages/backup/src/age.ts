/**
 * Encrypts a stream with a passphrase in the format of age (https://age-encryption.org/v1), so that the program `age` and its
 * libraries can decrypt a backup, too. The key comes from scrypt; the content is sealed with ChaCha20-Poly1305 in chunks.
 */
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes, scrypt } from 'node:crypto'
import { promisify } from 'node:util'
import { ByteBuffer } from '@sluice/kit'
import { AppError, equalDigests, hmacSha256 } from '@sluice/sdk'

const VERSION_LINE = 'age-encryption.org/v1'
/** The binary logarithm of the work factor: 128 MiB of memory and about half a second. */
const WORK_FACTOR = 17
/** A file with a higher one is refused: an attacker could make this machine run out of memory. */
const WORK_FACTOR_MAX = 20
const FILE_KEY_BYTES = 16
const NONCE_BYTES = 16
const TAG_BYTES = 16
const CHUNK_BYTES = 64 * 1024
const HEADER_BYTES_MAX = 4096
const HEADER = /^age-encryption\.org\/v1\n-> scrypt ([A-Za-z0-9+/]{22}) ([1-9]\d?)\n([A-Za-z0-9+/]{43})\n--- ([A-Za-z0-9+/]{43})\n/

const base64 = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64').replaceAll('=', '')

/** The first bytes of every encrypted file. */
export const isSealed = (head: Uint8Array): boolean => Buffer.from(head).subarray(0, VERSION_LINE.length).equals(Buffer.from(VERSION_LINE))
export const SEALED_HEAD_BYTES = VERSION_LINE.length

/** Yields the encrypted file. A smaller work factor is for tests. */
export async function* seal(
  source: AsyncIterable<Uint8Array>,
  passphrase: string,
  workFactor: number = WORK_FACTOR,
): AsyncIterable<Uint8Array> {
  const fileKey = randomBytes(FILE_KEY_BYTES)
  const salt = randomBytes(16)
  const wrapped = sealChunk(await wrapKey(passphrase, salt, workFactor), Buffer.alloc(12), fileKey)
  const head = `${VERSION_LINE}\n-> scrypt ${base64(salt)} ${workFactor}\n${base64(wrapped)}\n---`
  const nonce = randomBytes(NONCE_BYTES)
  yield Buffer.concat([Buffer.from(`${head} ${base64(headerMac(fileKey, head))}\n`), nonce])
  const key = payloadKey(fileKey, nonce)
  for await (const { chunk, number, isLast } of chunksOf(source, CHUNK_BYTES)) yield sealChunk(key, chunkNonce(number, isLast), chunk)
}

/** Yields the content of an encrypted file. Throws `invalid_request` for a wrong passphrase or a file that was changed or cut off. */
export async function* unseal(source: AsyncIterable<Uint8Array>, passphrase: string): AsyncIterable<Uint8Array> {
  const stream = source[Symbol.asyncIterator]()
  const { header, nonce, rest } = await readHead(stream)
  const key = payloadKey(await openFileKey(header, passphrase), nonce)
  async function* payload(): AsyncIterable<Uint8Array> {
    yield rest
    for (let next = await stream.next(); !next.done; next = await stream.next()) yield next.value
  }
  for await (const { chunk, number, isLast } of chunksOf(payload(), CHUNK_BYTES + TAG_BYTES)) {
    yield openChunk(key, chunkNonce(number, isLast), chunk)
  }
}

/** Reads the header and the nonce of the payload; `rest` are the bytes after them that were read already. */
async function readHead(stream: AsyncIterator<Uint8Array>) {
  const read = new ByteBuffer()
  for (;;) {
    const { value, done } = await stream.next()
    if (value) read.append(value)
    const bytes = read.bytes()
    const header = HEADER.exec(bytes.subarray(0, HEADER_BYTES_MAX).toString('latin1'))
    const end = (header?.[0].length ?? 0) + NONCE_BYTES
    if (header && bytes.length >= end) return { header, nonce: bytes.subarray(header[0].length, end), rest: bytes.subarray(end) }
    if (done || bytes.length > HEADER_BYTES_MAX) throw damaged('it does not begin as a file that was encrypted with a passphrase')
  }
}

async function openFileKey([header, salt = '', factor = '', wrapped = '', mac = '']: RegExpExecArray, passphrase: string): Promise<Buffer> {
  if (Number(factor) > WORK_FACTOR_MAX) throw damaged(`its work factor is above ${WORK_FACTOR_MAX}`)
  const key = await wrapKey(passphrase, Buffer.from(salt, 'base64'), Number(factor))
  let fileKey: Buffer
  try {
    fileKey = openChunk(key, Buffer.alloc(12), Buffer.from(wrapped, 'base64'))
  } catch {
    throw new AppError('invalid_request', 'The passphrase is wrong.')
  }
  const authenticated = header.slice(0, header.lastIndexOf('---') + 3)
  if (!equalDigests(headerMac(fileKey, authenticated), Buffer.from(mac, 'base64'))) throw damaged('its header was changed')
  return fileKey
}

const wrapKey = async (passphrase: string, salt: Uint8Array, factor: number): Promise<Buffer> => {
  const derive = promisify<string, Uint8Array, number, { N: number; r: number; p: number; maxmem: number }, Buffer>(scrypt)
  const N = 2 ** factor
  return derive(passphrase, Buffer.concat([Buffer.from(`${VERSION_LINE}/scrypt`), salt]), 32, { N, r: 8, p: 1, maxmem: 1024 * N * 2 })
}

const expand = (key: Uint8Array, salt: Uint8Array, info: string): Buffer => Buffer.from(hkdfSync('sha256', key, salt, info, 32))
const headerMac = (fileKey: Uint8Array, head: string): Buffer => hmacSha256(expand(fileKey, new Uint8Array(), 'header'), head)
const payloadKey = (fileKey: Uint8Array, nonce: Uint8Array): Buffer => expand(fileKey, nonce, 'payload')

/** Eleven bytes of a counter, and one that marks the last chunk, so that a file that was cut off does not decrypt. */
function chunkNonce(number: number, isLast: boolean): Buffer {
  const nonce = Buffer.alloc(12)
  nonce.writeBigUInt64BE(BigInt(number), 3)
  nonce[11] = isLast ? 1 : 0
  return nonce
}

function sealChunk(key: Uint8Array, nonce: Uint8Array, plain: Uint8Array): Buffer {
  const cipher = createCipheriv('chacha20-poly1305', key, nonce, { authTagLength: TAG_BYTES })
  return Buffer.concat([cipher.update(plain), cipher.final(), cipher.getAuthTag()])
}

function openChunk(key: Uint8Array, nonce: Uint8Array, sealed: Uint8Array): Buffer {
  if (sealed.length < TAG_BYTES) throw damaged('it ends too early')
  const decipher = createDecipheriv('chacha20-poly1305', key, nonce, { authTagLength: TAG_BYTES })
  decipher.setAuthTag(sealed.subarray(-TAG_BYTES))
  try {
    return Buffer.concat([decipher.update(sealed.subarray(0, -TAG_BYTES)), decipher.final()])
  } catch (cause) {
    throw damaged('a part of it was changed or is missing', cause)
  }
}

interface Chunk {
  readonly chunk: Uint8Array
  readonly number: number
  readonly isLast: boolean
}

/** Yields pieces of one size and a last one that may be shorter. It is empty only if the whole source is. */
async function* chunksOf(source: AsyncIterable<Uint8Array>, size: number): AsyncIterable<Chunk> {
  let rest: Uint8Array = new Uint8Array()
  let number = 0
  for await (const more of source) {
    const bytes = rest.length === 0 ? more : Buffer.concat([rest, more])
    let at = 0
    // A whole chunk stays until more bytes come, because it may be the last one.
    for (; bytes.length - at > size; at += size) yield { chunk: bytes.subarray(at, at + size), number: number++, isLast: false }
    rest = bytes.subarray(at)
  }
  yield { chunk: rest, number, isLast: true }
}

const damaged = (why: string, cause?: unknown): AppError =>
  new AppError('invalid_request', `The encrypted file cannot be read: ${why}.`, { cause })
