/** A board at the far end of a line, for tests: it speaks either dialect, remembers what it heard, and misbehaves on order. */
import { members, parsedOrUndefined } from '@sluice/kit/foreign-json'
import type { Port } from '../devices.ts'

/** What becomes of the answer to one request. */
export type Fault =
  | 'none'
  | 'silent'
  /** Binary noise and a broken line come first. */
  | 'noise'
  /** Half of the answer, and nothing more. */
  | 'half'
  /** Half of the answer, then the line is gone. */
  | 'unplug'
  /** The answer to something else comes first. */
  | 'stray'
  /** Only the answer to something else. */
  | 'wrong-id'
  /** The request comes back before the answer. */
  | 'echo'
  /** The request comes back, and nothing else. */
  | 'only-echo'
  /** A line that does not end, much longer than any frame. */
  | 'endless'
  /** Lines of another protocol. */
  | 'other-protocol'
  | 'refuse'
  | { readonly answer: unknown }

export interface Heard {
  readonly id: string | null
  readonly command: string
  readonly args: Readonly<Record<string, unknown>>
}

export interface FakeBoard {
  /** Requests, without pings and without `capabilities`. */
  readonly heard: readonly Heard[]
  readonly pins: Map<number, 0 | 1>
  /** How the next requests are answered, one each; pings are always answered properly, but for `always`. */
  next(...faults: Fault[]): void
  /** How all requests from now on are answered, pings too. */
  always(fault: Fault): void
  /** Sends as it is. */
  say(text: string | Uint8Array): void
}

export interface FakeBoardOptions {
  readonly dialect?: 'numbered' | 'bare'
  readonly capabilities?: object | null
  /** Answers `gpio_*` only when told to, in the order they came. */
  readonly delay?: () => Promise<void>
}

/** Endless for a link: 64 KiB without a newline. */
const ENDLESS = Buffer.alloc(65_536, 'x')
const NOISE = Buffer.from([0, 255, 10, 13, 254, 123, 34, 0, 10])
const STRAY = '999999999'
const CAPABILITIES = { gpio: [2, 3, 4, 5, 12, 13], led_pin: 13, board: 'board_b', firmware: 'fake 1' }

export function fakeBoard(far: Port, { dialect = 'numbered', capabilities = CAPABILITIES, delay }: FakeBoardOptions = {}): FakeBoard {
  const heard: Heard[] = []
  const pins = new Map<number, 0 | 1>()
  const faults: Fault[] = []
  let always: Fault | undefined
  const say = (text: string | Uint8Array): void => void far.write(Buffer.from(text)).catch(() => undefined)

  const resultOf = ({ command, args }: Heard): unknown => {
    const pin = Number(args.pin)
    if (command === 'ping') return dialect === 'bare' ? { firmware: 'fake 1' } : 'pong'
    if (command === 'capabilities') return dialect === 'bare' ? capabilities : JSON.stringify(capabilities)
    if (command === 'gpio_read') return dialect === 'bare' ? { value: pins.get(pin) ?? 0, state: 'LOW' } : String(pins.get(pin) ?? 0)
    pins.set(pin, args.value === 1 ? 1 : 0)
    return dialect === 'bare' ? { state: 'set' } : 'done'
  }
  const frame = (id: string | null, result: unknown): string =>
    `${JSON.stringify(dialect === 'bare' ? { ok: true, data: result } : { id, ok: true, result })}\n`

  const answer = (line: string, request: Heard, fault: Fault): void => {
    const { id } = request
    const refusal = `${JSON.stringify(dialect === 'bare' ? { ok: false, error: 'Invalid pin' } : { id, ok: false, error: 'Invalid pin' })}\n`
    const reply = frame(id, resultOf(request))
    if (typeof fault === 'object') say(frame(id, fault.answer))
    else if (fault === 'noise') say(Buffer.concat([NOISE, Buffer.from(`{"id":"${id}","ok":tr\n${reply}`)]))
    else if (fault === 'half' || fault === 'unplug') say(reply.slice(0, reply.length / 2))
    else if (fault === 'stray') say(`${frame(STRAY, 'stray')}${reply}`)
    else if (fault === 'wrong-id') say(frame(STRAY, resultOf(request)))
    else if (fault === 'echo') say(`${line}\n${reply}`)
    else if (fault === 'only-echo') say(`${line}\n`)
    else if (fault === 'endless') say(ENDLESS)
    else if (fault === 'other-protocol') say('$GPGGA,123519,4807.038,N,01131.000,E*47\r\nok T:200.0\r\n')
    else if (fault === 'refuse') say(refusal)
    else if (fault === 'none') say(reply)
    if (fault === 'unplug') setImmediate(() => setImmediate(() => void far.close()))
  }

  const take = async (line: string): Promise<void> => {
    const { id, cmd, args, params } = members(parsedOrUndefined(line))
    if (typeof cmd !== 'string') return
    const request: Heard = { id: typeof id === 'string' ? id : null, command: cmd, args: members(dialect === 'bare' ? params : args) }
    const asks = cmd !== 'ping' && cmd !== 'capabilities'
    if (asks) heard.push(request)
    if (asks) await delay?.()
    answer(line, request, always ?? (asks ? faults.shift() : undefined) ?? 'none')
  }

  let held = ''
  far.onData((bytes) => {
    const lines = (held + Buffer.from(bytes).toString('utf8')).split('\n')
    held = lines.pop() ?? ''
    for (const line of lines) void take(line)
  })

  return {
    heard,
    pins,
    next: (...more) => void faults.push(...more),
    always(fault) {
      always = fault
    },
    say,
  }
}
