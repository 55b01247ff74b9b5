/**
 * Reads and replaces `main.py`, the program that a MicroPython board starts by itself. A failed write leaves the old one in
 * place.
 */
import { createHash } from 'node:crypto'
import { AppError } from '@sluice/sdk'
import { MAIN_BYTES_MAX } from './limits.ts'
import type { Repl } from './repl.ts'

const NEW = 'main.py.new'
/** Small enough for a board with little memory. */
const PIECE_BYTES = 1024
/** Limits each step. Erasing flash takes time, but never this long. */
const STEP_MS = 10_000

const READ = `
import os
try:
    n = os.stat('main.py')[6]
except OSError:
    n = -1
print(n)
if 0 <= n <= ${MAIN_BYTES_MAX}:
    import binascii
    with open('main.py', 'rb') as f:
        b = f.read(256)
        while b:
            print(binascii.hexlify(b).decode())
            b = f.read(256)
`

/** Returns undefined when the board has no `main.py`. Throws `too_large`, and as `Repl.ask`. */
export async function readMain(repl: Repl): Promise<string | undefined> {
  const answer = await repl.ask(READ, { outputBytesMax: 3 * MAIN_BYTES_MAX })
  const [size = '', ...lines] = answer.split('\n')
  const bytes = Number(size)
  if (!/^-?\d+$/.test(size)) throw new AppError('upstream', 'The board does not state the size of main.py')
  if (bytes < 0) return undefined
  if (bytes > MAIN_BYTES_MAX) throw new AppError('too_large', `main.py has ${bytes} bytes; the limit is ${MAIN_BYTES_MAX}`)
  const content = Buffer.from(lines.join(''), 'hex')
  if (content.length !== bytes) throw new AppError('upstream', `Only ${content.length} of the ${bytes} bytes of main.py arrived`)
  return content.toString('utf8')
}

/**
 * Replaces the program once the new one has arrived and its hash has been checked. Throws `too_large`, `upstream` when the
 * board cannot store it, and as `Repl.ask`.
 */
export async function writeMain(repl: Repl, code: string | Uint8Array): Promise<{ readonly bytes: number; readonly sha256: string }> {
  const content = typeof code === 'string' ? Buffer.from(code) : Buffer.from(code.buffer, code.byteOffset, code.byteLength)
  if (content.length > MAIN_BYTES_MAX)
    throw new AppError('too_large', `The program has ${content.length} bytes; the limit is ${MAIN_BYTES_MAX}`)
  const sha256 = createHash('sha256').update(content).digest('hex')
  const step = (code: string): Promise<string> => repl.ask(code, { timeoutMs: STEP_MS })
  try {
    await step(`import os, binascii, hashlib\nf = open('${NEW}', 'wb')`)
    for (let at = 0; at < content.length; at += PIECE_BYTES) {
      const piece = content.subarray(at, at + PIECE_BYTES).toString('base64')
      await step(`f.write(binascii.a2b_base64(b'${piece}'))`)
    }
    const found = (await step(HASH)).trim()
    if (found !== sha256) throw new AppError('upstream', 'The program was damaged on its way to the board; main.py was not changed')
  } catch (error) {
    await step(DISCARD).catch(() => undefined)
    throw error
  }
  try {
    await step(RENAME)
  } catch (error) {
    await step(KEEP_ONE).catch(() => undefined)
    throw error
  }
  return { bytes: content.length, sha256 }
}

const HASH = `
f.close()
h = hashlib.sha256()
with open('${NEW}', 'rb') as f:
    b = f.read(256)
    while b:
        h.update(b)
        b = f.read(256)
print(binascii.hexlify(h.digest()).decode())
`

// A FAT file system does not rename over an existing file.
const RENAME = `
try:
    os.rename('${NEW}', 'main.py')
except OSError:
    os.remove('main.py')
    os.rename('${NEW}', 'main.py')
if hasattr(os, 'sync'):
    os.sync()
`

const DISCARD = `
import os
try:
    f.close()
except Exception:
    pass
try:
    os.remove('${NEW}')
except OSError:
    pass
`

// When main.py has already been removed, the new file is the only copy and stays.
const KEEP_ONE = `
if 'main.py' in os.listdir():
    os.remove('${NEW}')
`
