/** The program a MicroPython board starts by itself, `main.py`: read whole, and replaced whole or not at all. */
import { createHash } from 'node:crypto'
import { AppError } from '@sluice/sdk'
import { MAIN_BYTES_MAX } from './limits.ts'
import type { Repl } from './repl.ts'

const NEW = 'main.py.new'
/** What a board with little memory takes at once. */
const PIECE_BYTES = 1024
/** Of each step: flash that is erased takes its time, but not that much. */
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

/** Undefined: there is none. Throws `too_large`, and as `Repl.ask`. */
export async function readMain(repl: Repl): Promise<string | undefined> {
  const answer = await repl.ask(READ, { outputBytesMax: 3 * MAIN_BYTES_MAX })
  const [size = '', ...lines] = answer.split('\n')
  const bytes = Number(size)
  if (!/^-?\d+$/.test(size)) throw new AppError('upstream', 'The board does not say how long main.py is')
  if (bytes < 0) return undefined
  if (bytes > MAIN_BYTES_MAX) throw new AppError('too_large', `main.py has ${bytes} bytes, over ${MAIN_BYTES_MAX}`)
  const content = Buffer.from(lines.join(''), 'hex')
  if (content.length !== bytes) throw new AppError('upstream', `Of the ${bytes} bytes of main.py ${content.length} arrived`)
  return content.toString('utf8')
}

/**
 * What was there before stays until the new one is complete, and was found to be what was sent. Throws `too_large`,
 * `upstream` when the board cannot keep it, and as `Repl.ask`.
 */
export async function writeMain(repl: Repl, code: string | Uint8Array): Promise<{ readonly bytes: number; readonly sha256: string }> {
  const content = typeof code === 'string' ? Buffer.from(code) : Buffer.from(code.buffer, code.byteOffset, code.byteLength)
  if (content.length > MAIN_BYTES_MAX) throw new AppError('too_large', `The program has ${content.length} bytes, over ${MAIN_BYTES_MAX}`)
  const sha256 = createHash('sha256').update(content).digest('hex')
  const step = (code: string): Promise<string> => repl.ask(code, { timeoutMs: STEP_MS })
  try {
    await step(`import os, binascii, hashlib\nf = open('${NEW}', 'wb')`)
    for (let at = 0; at < content.length; at += PIECE_BYTES) {
      const piece = content.subarray(at, at + PIECE_BYTES).toString('base64')
      await step(`f.write(binascii.a2b_base64(b'${piece}'))`)
    }
    const found = (await step(HASH)).trim()
    if (found !== sha256) throw new AppError('upstream', 'What arrived on the board is not what was sent; main.py is as it was')
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

// A FAT volume does not rename over what is there.
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

// Where the old one is gone already, the new one is all there is.
const KEEP_ONE = `
if 'main.py' in os.listdir():
    os.remove('${NEW}')
`
