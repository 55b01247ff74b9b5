/** Starts matrix-nio, a Matrix client with an encryption of its own, as a person in a room. */
import { spawn, spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { vi } from 'vitest'
import { FEDCHAT_PASSWORD } from './fake.ts'

/** Debian's interpreter, for which its packages are installed. */
const PYTHON = '/usr/bin/python3'

/** The part that this machine lacks for tests with matrix-nio; undefined if it has all. */
export const missingNio = (): string | undefined =>
  spawnSync(PYTHON, ['-c', 'from nio.crypto import ENCRYPTION_ENABLED; assert ENCRYPTION_ENABLED']).status === 0
    ? undefined
    : 'matrix-nio with encryption is not installed (apt-get install python3-matrix-nio python3-olm)'

/** An event as the client shows it, decrypted. */
export interface NioEvent {
  readonly kind: string
  readonly room: string
  readonly id: string
  readonly sender: string
  readonly body: string | null
  readonly content: Readonly<Record<string, unknown>>
  readonly encrypted: boolean
  readonly file?: string
}

export interface NioPerson {
  readonly events: readonly NioEvent[]
  /** Sends an event, encrypted where the room is. Resolves to its id. */
  send(room: string, content: object): Promise<string>
  sendFile(room: string, name: string, text: string): Promise<string>
  redact(room: string, event: string): Promise<string>
  /** Begins to verify a device. */
  verify(userId: string, deviceId: string): Promise<string>
  /** The names of the emoji of a verification; undefined until they are known. */
  readonly emoji: readonly string[] | undefined
  /** Says that the emoji match. */
  confirm(): Promise<string>
  /** Whether the verified device is trusted in the end. */
  readonly isVerified: boolean
  close(): Promise<void>
}

/** A line of output of the client. */
interface Line {
  readonly ready?: string
  readonly event?: NioEvent
  readonly sent?: string
  readonly error?: string
  readonly failed?: string
  readonly nr?: number
  readonly emoji?: readonly string[]
  readonly flow?: string
  readonly verified?: boolean
}

export async function startNio(homeserver: string, userId: string, deviceId = 'NIODEVICE'): Promise<NioPerson> {
  const child = spawn(PYTHON, [join(import.meta.dirname, 'nio-client.py'), homeserver, userId, FEDCHAT_PASSWORD, deviceId])
  const events: NioEvent[] = []
  const answers = new Map<number, { resolve(id: string): void; reject(error: Error): void }>()
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()))
  let errors = ''
  let isReady = false
  let verification: { emoji?: readonly string[]; flow: string; isVerified: boolean } = { flow: '', isVerified: false }
  child.stderr.setEncoding('utf8').on('data', (text: string) => (errors += text))
  createInterface({ input: child.stdout }).on('line', (line) => {
    const { event, sent, error, nr = 0, ready, failed, emoji, flow = '', verified } = JSON.parse(line) as Line
    if (failed) console.error(`matrix-nio stopped its sync: ${failed}`)
    if (ready) isReady = true
    if (emoji) verification = { ...verification, emoji, flow }
    if (verified) verification = { ...verification, isVerified: true }
    if (event) events.push(event)
    if (sent) answers.get(nr)?.resolve(sent)
    if (error) answers.get(nr)?.reject(new Error(error))
  })
  await vi.waitFor(
    () => {
      if (!isReady) throw new Error(`matrix-nio is not ready: ${errors}`)
    },
    { timeout: 30_000 },
  )
  let count = 0
  const ask = (command: object): Promise<string> => {
    const nr = ++count
    const { promise, resolve, reject } = Promise.withResolvers<string>()
    answers.set(nr, { resolve, reject })
    child.stdin.write(`${JSON.stringify({ nr, ...command })}\n`)
    return promise
  }
  return {
    events,
    send: (room, content) => ask({ room, content }),
    sendFile: (room, name, text) => ask({ room, name, file: text }),
    redact: (room, event) => ask({ room, redact: event }),
    verify: (user, device) => ask({ verify: [user, device] }),
    get emoji() {
      return verification.emoji
    },
    confirm: () => ask({ confirm: verification.flow }),
    get isVerified() {
      return verification.isVerified
    },
    async close() {
      child.stdin.end()
      child.kill()
      await ended
    },
  }
}
