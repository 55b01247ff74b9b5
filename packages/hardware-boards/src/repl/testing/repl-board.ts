/** A simulated MicroPython REPL on a port in memory, with the faults of real lines. */
import type { Port } from '../../devices.ts'
import { memoryPort } from '../../transports/memory-port.ts'

export interface Executed {
  readonly stdout?: string
  readonly stderr?: string
  /** The code runs until it is interrupted. */
  readonly hangs?: true
}

export interface ReplBoardSettings {
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

export type ReplMode = 'friendly' | 'raw' | 'paste' | 'executing' | 'running' | 'stalled'

const RAW_BANNER = '\r\nraw REPL; CTRL-B to exit\r\n>'
const BANNER = '\r\nMicroPython v1.24.1 on 2024-11-29; Raspberry Pi Pico with RP2040\r\nType "help()" for more information.\r\n>>> '
const INTERRUPTED = 'Traceback (most recent call last):\r\n  File "<stdin>", line 1, in <module>\r\nKeyboardInterrupt: \r\n'

export class ReplBoard {
  /** The port at the computer's end of the line. */
  readonly port: Port
  /** The code of each run, in order. */
  readonly codes: string[] = []
  readonly #settings: ReplBoardSettings
  readonly #far: Port
  readonly #window: number
  #mode: ReplMode
  #softResets = 0
  /** The bytes of the line or program that is being received. */
  #input = ''
  #pastedBytes = 0
  #catchesLeft: number
  #promptsToLose: number

  constructor(settings: ReplBoardSettings = {}) {
    const { near, far } = memoryPort()
    this.#settings = settings
    this.#far = settings.far ?? far
    this.#window = settings.window ?? 32
    this.#mode = settings.program ? 'running' : 'friendly'
    this.#catchesLeft = settings.catches ?? 0
    this.#promptsToLose = settings.losesPrompts ?? 0
    this.port = settings.hangsAfter === undefined ? near : hanging(near, settings.hangsAfter)
    this.#far.onData((bytes) => this.#receive(Buffer.from(bytes).toString('latin1')))
  }

  /** `running` while `main.py` runs. */
  get mode(): ReplMode {
    return this.#mode
  }

  get softResets(): number {
    return this.#softResets
  }

  unplug(): Promise<void> {
    return this.#far.close()
  }

  #receive(text: string): void {
    const { instead } = this.#settings
    if (instead === 'echo') this.#send(text)
    else if (instead === 'noise') this.#send('\xff\x00\x81{"event"\x04\x04'.repeat(50))
    else if (instead !== 'silence') for (const byte of text) this.#takeByte(byte)
  }

  #takeByte(byte: string): void {
    if (this.#mode === 'raw') this.#takeRaw(byte)
    else if (this.#mode === 'paste') this.#takePasted(byte)
    else if (this.#mode === 'friendly') this.#takeAtPrompt(byte)
    else if (this.#mode !== 'stalled' && byte === '\x03') this.#interrupt()
  }

  #takeAtPrompt(byte: string): void {
    if (byte === '\x01') {
      this.#mode = 'raw'
      this.#input = ''
      this.#send(`${this.#garbage}${RAW_BANNER}`)
    } else if (byte === '\x04') this.#softReset()
    else if (byte === '\x02') this.#send(BANNER)
    else if (byte === '\x03' || byte === '\r') this.#prompt()
  }

  #takeRaw(byte: string): void {
    this.#input += byte
    if (this.#answerPasteRequest()) return
    const before = this.#input.slice(0, -1)
    if (byte < '\x05') this.#input = ''
    // An older version takes the last byte of that request as a request for raw mode.
    if (byte === '\x01') this.#send(before.endsWith('A') ? `ra${RAW_BANNER.slice(2)}` : RAW_BANNER)
    else if (byte === '\x02') {
      this.#mode = 'friendly'
      this.#send(BANNER)
    } else if (byte === '\x04') {
      this.#send('OK')
      this.#start(before)
    }
  }

  /** Answers a request for raw-paste mode, and returns whether there was one. */
  #answerPasteRequest(): boolean {
    const { rawPaste = 'yes' } = this.#settings
    if (this.#input !== '\x05A\x01' || rawPaste === 'unknown') return false
    this.#input = ''
    if (rawPaste === 'yes') {
      this.#mode = 'paste'
      this.#pastedBytes = 0
      this.#send(`R\x01${String.fromCharCode(this.#window & 0xff, this.#window >> 8)}`)
    } else this.#send('R\x00')
    return true
  }

  #takePasted(byte: string): void {
    const { stallsAfter = Number.POSITIVE_INFINITY } = this.#settings
    const code = this.#input
    this.#input = byte < '\x05' ? '' : this.#input + byte
    if (byte === '\x03') {
      this.#mode = 'raw'
      this.#send(`\x04\x04${INTERRUPTED}\x04>`)
    } else if (byte === '\x04') {
      this.#send('\x04')
      this.#start(code)
    } else if (++this.#pastedBytes >= stallsAfter) this.#mode = 'stalled'
    else if (this.#pastedBytes % this.#window === 0) this.#send('\x01')
  }

  #start(code: string): void {
    const text = Buffer.from(code, 'latin1').toString('utf8')
    this.codes.push(text)
    const result = this.#settings.execute?.(text) ?? {}
    if (result.hangs) {
      this.#mode = 'executing'
      this.#send(result.stdout ?? '')
    } else this.#finish(result)
  }

  #finish({ stdout = '', stderr = '' }: Executed): void {
    this.#send(`${stdout}\x04${stderr}\x04>`)
    this.#mode = 'raw'
  }

  #interrupt(): void {
    if (this.#catchesLeft-- > 0) return
    if (this.#mode === 'executing') this.#finish({ stderr: INTERRUPTED })
    else {
      this.#mode = 'friendly'
      this.#send(INTERRUPTED)
      this.#prompt()
    }
  }

  #softReset(): void {
    const { program } = this.#settings
    this.#softResets++
    this.#send('\r\nMPY: soft reboot\r\n')
    this.#mode = program ? 'running' : 'friendly'
    if (!program) this.#send(BANNER)
  }

  #prompt(): void {
    if (this.#promptsToLose > 0) this.#promptsToLose--
    else this.#send(`${this.#garbage}\r\n>>> `)
  }

  get #garbage(): string {
    return this.#settings.garbage ?? ''
  }

  #send(text: string): void {
    void this.#far.write(Buffer.from(text, 'latin1')).catch(() => undefined)
  }
}

function hanging(port: Port, bytesMax: number): Port {
  let written = 0
  return {
    ...port,
    write(bytes) {
      written += bytes.length
      return written > bytesMax ? new Promise(() => undefined) : port.write(bytes)
    },
  }
}
