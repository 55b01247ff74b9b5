/** A fake board at the far end of a line. It speaks either dialect, records the requests, and misbehaves on demand. */
import { members, parsedOrUndefined } from '@sluice/kit/foreign-json'
import type { Port } from '../devices.ts'

/** How one request is answered. */
export type Fault =
  | 'none'
  | 'silent'
  /** The reply follows binary noise and a broken line. */
  | 'noise'
  /** Half of the reply is sent. */
  | 'half'
  /** Half of the reply is sent, then the line closes. */
  | 'unplug'
  /** A reply to another request comes first. */
  | 'stray'
  /** Only a reply to another request is sent. */
  | 'wrong-id'
  /** The request is echoed before the reply. */
  | 'echo'
  /** The request is echoed, without a reply. */
  | 'only-echo'
  /** A line without an end, much longer than any frame. */
  | 'endless'
  /** Lines of another protocol. */
  | 'other-protocol'
  | 'refuse'
  | { readonly answer: unknown }

export interface BoardRequest {
  readonly id: string | null
  readonly command: string
  readonly args: Readonly<Record<string, unknown>>
}

export interface FakeBoard {
  /** The requests, without `ping` and `capabilities`. */
  readonly requests: readonly BoardRequest[]
  readonly pins: Map<number, 0 | 1>
  /** Sets the faults of the next requests, one each. Pings are answered correctly unless `always` was called. */
  next(...faults: Fault[]): void
  /** Sets the fault of all requests from now on, pings included. */
  always(fault: Fault): void
  /** Sends the text unchanged. */
  send(text: string | Uint8Array): void
}

export interface FakeBoardOptions {
  readonly dialect?: 'numbered' | 'bare'
  readonly capabilities?: object | null
  /** Delays each reply except to `ping` and `capabilities`. */
  readonly delay?: () => Promise<void>
}

/** 64 KiB without a newline, more than a link ever keeps. */
const ENDLESS = Buffer.alloc(65_536, 'x')
const NOISE = Buffer.from([0, 255, 10, 13, 254, 123, 34, 0, 10])
const STRAY = '999999999'
const CAPABILITIES = { gpio: [2, 3, 4, 5, 12, 13], led_pin: 13, board: 'board_b', firmware: 'fake 1' }

export function fakeBoard(far: Port, { dialect = 'numbered', capabilities = CAPABILITIES, delay }: FakeBoardOptions = {}): FakeBoard {
  const requests: BoardRequest[] = []
  const pins = new Map<number, 0 | 1>()
  const faults: Fault[] = []
  let always: Fault | undefined
  const send = (text: string | Uint8Array): void => void far.write(Buffer.from(text)).catch(() => undefined)

  const resultOf = ({ command, args }: BoardRequest): unknown => {
    const pin = Number(args.pin)
    if (command === 'ping') return dialect === 'bare' ? { firmware: 'fake 1' } : 'pong'
    if (command === 'capabilities') return dialect === 'bare' ? capabilities : JSON.stringify(capabilities)
    if (command === 'gpio_read') return dialect === 'bare' ? { value: pins.get(pin) ?? 0, state: 'LOW' } : String(pins.get(pin) ?? 0)
    pins.set(pin, args.value === 1 ? 1 : 0)
    return dialect === 'bare' ? { state: 'set' } : 'done'
  }
  const frame = (id: string | null, result: unknown): string =>
    `${JSON.stringify(dialect === 'bare' ? { ok: true, data: result } : { id, ok: true, result })}\n`

  const answer = (line: string, request: BoardRequest, fault: Fault): void => {
    const { id } = request
    const refusal = `${JSON.stringify(dialect === 'bare' ? { ok: false, error: 'Invalid pin' } : { id, ok: false, error: 'Invalid pin' })}\n`
    const reply = frame(id, resultOf(request))
    if (typeof fault === 'object') send(frame(id, fault.answer))
    else if (fault === 'noise') send(Buffer.concat([NOISE, Buffer.from(`{"id":"${id}","ok":tr\n${reply}`)]))
    else if (fault === 'half' || fault === 'unplug') send(reply.slice(0, reply.length / 2))
    else if (fault === 'stray') send(`${frame(STRAY, 'stray')}${reply}`)
    else if (fault === 'wrong-id') send(frame(STRAY, resultOf(request)))
    else if (fault === 'echo') send(`${line}\n${reply}`)
    else if (fault === 'only-echo') send(`${line}\n`)
    else if (fault === 'endless') send(ENDLESS)
    else if (fault === 'other-protocol') send('$GPGGA,123519,4807.038,N,01131.000,E*47\r\nok T:200.0\r\n')
    else if (fault === 'refuse') send(refusal)
    else if (fault === 'none') send(reply)
    if (fault === 'unplug') setImmediate(() => setImmediate(() => void far.close()))
  }

  const take = async (line: string): Promise<void> => {
    const { id, cmd, args, params } = members(parsedOrUndefined(line))
    if (typeof cmd !== 'string') return
    const request: BoardRequest = {
      id: typeof id === 'string' ? id : null,
      command: cmd,
      args: members(dialect === 'bare' ? params : args),
    }
    const asks = cmd !== 'ping' && cmd !== 'capabilities'
    if (asks) requests.push(request)
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
    requests,
    pins,
    next: (...more) => void faults.push(...more),
    always(fault) {
      always = fault
    },
    send,
  }
}
