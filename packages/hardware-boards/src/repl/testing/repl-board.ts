/** A simulated MicroPython REPL on a port in memory, with the faults of real lines. */
import type { Port } from '../../devices.ts'
import { memoryPort } from '../../transports/memory-port.ts'

export interface Executed {
  readonly stdout?: string
  readonly stderr?: string
  /** The code runs until it is interrupted. */
  readonly hangs?: true
}

export interface ReplBoardOptions {
  /** The board's end of a line; a line in memory unless given. */
  readonly far?: Port
  readonly execute?: (code: string) => Executed
  /** `unknown` for a version older than raw-paste mode. */
  readonly rawPaste?: 'yes' | 'no' | 'unknown'
  readonly window?: number
  /** The board has a `main.py`, which is running. */
  readonly program?: true
  /** How many interrupts the program, or the code, catches. */
  readonly catches?: number
  /** Replaces the REPL by silence, an echo or noise. */
  readonly instead?: 'silence' | 'echo' | 'noise'
  /** Text that the line adds before each prompt. */
  readonly garbage?: string
  /** Stops reading after this many bytes of code. */
  readonly stallsAfter?: number
  /** After this many bytes, a write never completes. */
  readonly hangsAfter?: number
  /** How many prompts are lost. */
  readonly losesPrompts?: number
}

export interface ReplBoard {
  readonly port: Port
  /** The code of each run, in order. */
  readonly codes: readonly string[]
  readonly softResets: number
  /** `running` while `main.py` runs. */
  readonly mode: 'friendly' | 'raw' | 'paste' | 'executing' | 'running' | 'stalled'
  unplug(): Promise<void>
}

const RAW_BANNER = '\r\nraw REPL; CTRL-B to exit\r\n>'
const BANNER = '\r\nMicroPython v1.24.1 on 2024-11-29; Raspberry Pi Pico with RP2040\r\nType "help()" for more information.\r\n>>> '
const INTERRUPTED = 'Traceback (most recent call last):\r\n  File "<stdin>", line 1, in <module>\r\nKeyboardInterrupt: \r\n'

export function replBoard(options: ReplBoardOptions = {}): ReplBoard {
  const {
    execute = () => ({}),
    rawPaste = 'yes',
    window = 32,
    program,
    instead,
    garbage = '',
    stallsAfter = Number.POSITIVE_INFINITY,
    hangsAfter,
  } = options
  const { near, far: memory } = memoryPort()
  const { far = memory } = options
  const codes: string[] = []
  let mode: ReplBoard['mode'] = program ? 'running' : 'friendly'
  let held = ''
  let pasted = 0
  let catches = options.catches ?? 0
  let losing = options.losesPrompts ?? 0
  let softResets = 0

  const say = (text: string): void => void far.write(Buffer.from(text, 'latin1')).catch(() => undefined)
  const prompt = (): void => {
    if (losing > 0) losing--
    else say(`${garbage}\r\n>>> `)
  }
  const finish = ({ stdout = '', stderr = '' }: Executed): void => {
    say(`${stdout}\x04${stderr}\x04>`)
    mode = 'raw'
  }
  const start = (code: string): void => {
    codes.push(Buffer.from(code, 'latin1').toString('utf8'))
    const result: Executed = execute(codes.at(-1) ?? '')
    if (result.hangs) {
      mode = 'executing'
      say(result.stdout ?? '')
    } else finish(result)
  }
  const softReset = (): void => {
    softResets++
    say('\r\nMPY: soft reboot\r\n')
    mode = program ? 'running' : 'friendly'
    if (!program) say(BANNER)
  }

  /** Answers a request for raw-paste mode, and returns whether there was one. */
  const asksForPaste = (): boolean => {
    if (held !== '\x05A\x01' || rawPaste === 'unknown') return false
    held = ''
    if (rawPaste === 'yes') {
      mode = 'paste'
      pasted = 0
      say(`R\x01${String.fromCharCode(window & 0xff, window >> 8)}`)
    } else say('R\x00')
    return true
  }
  const inRaw = (byte: string): void => {
    held += byte
    if (asksForPaste()) return
    const before = held.slice(0, -1)
    if (byte < '\x05') held = ''
    // An older version takes the last byte of that request as a request for raw mode.
    if (byte === '\x01') say(before.endsWith('A') ? `ra${RAW_BANNER.slice(2)}` : RAW_BANNER)
    else if (byte === '\x02') {
      mode = 'friendly'
      say(BANNER)
    } else if (byte === '\x04') {
      say('OK')
      start(before)
    }
  }
  const inPaste = (byte: string): void => {
    const code = held
    held = byte < '\x05' ? '' : held + byte
    if (byte === '\x03') {
      mode = 'raw'
      say(`\x04\x04${INTERRUPTED}\x04>`)
    } else if (byte === '\x04') {
      say('\x04')
      start(code)
    } else if (++pasted >= stallsAfter) mode = 'stalled'
    else if (pasted % window === 0) say('\x01')
  }
  const interrupt = (): void => {
    if (catches-- > 0) return
    if (mode === 'executing') finish({ stderr: INTERRUPTED })
    else {
      mode = 'friendly'
      say(INTERRUPTED)
      prompt()
    }
  }

  const atPrompt = (byte: string): void => {
    if (byte === '\x01') {
      mode = 'raw'
      held = ''
      say(`${garbage}${RAW_BANNER}`)
    } else if (byte === '\x04') softReset()
    else if (byte === '\x02') say(BANNER)
    else if (byte === '\x03' || byte === '\r') prompt()
  }
  const take = (byte: string): void => {
    if (mode === 'raw') inRaw(byte)
    else if (mode === 'paste') inPaste(byte)
    else if (mode === 'friendly') atPrompt(byte)
    else if (mode !== 'stalled' && byte === '\x03') interrupt()
  }

  far.onData((bytes) => {
    const text = Buffer.from(bytes).toString('latin1')
    if (instead === 'echo') say(text)
    else if (instead === 'noise') say('\xff\x00\x81{"event"\x04\x04'.repeat(50))
    else if (instead !== 'silence') for (const byte of text) take(byte)
  })

  return {
    port: hangsAfter === undefined ? near : hanging(near, hangsAfter),
    codes,
    get softResets() {
      return softResets
    },
    get mode() {
      return mode
    },
    unplug: () => far.close(),
  }
}

function hanging(port: Port, bytesMax: number): Port {
  let taken = 0
  return {
    ...port,
    write(bytes) {
      taken += bytes.length
      return taken > bytesMax ? new Promise(() => undefined) : port.write(bytes)
    },
  }
}
