import { AppError, Secret } from '@sluice/sdk'
import { testClock } from '@sluice/testkit/clock'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createLogger, type LogOptions } from './log.ts'

const clock = testClock()
const TIME = '2026-01-01T00:00:00.000Z'

function logger(options: Partial<LogOptions> & { readonly isTTY?: boolean } = {}) {
  const lines: string[] = []
  const { isTTY = false, ...rest } = options
  const stream = { isTTY, write: (line: string) => lines.push(line) }
  const log = createLogger({ level: 'info', format: 'auto', stream, clock, noColor: '', ...rest })
  return { log, lines, records: () => lines.map((line) => JSON.parse(line) as Record<string, unknown>) }
}

const fieldsOf = (fields: Record<string, unknown>, options: Partial<LogOptions> = {}): Record<string, unknown> => {
  const { log, records } = logger(options)
  log.error('m', fields)
  const { time: _, level: __, message: ___, ...found } = records()[0] ?? {}
  return found
}

describe('lines', () => {
  test('are JSON where the stream is not a terminal', () => {
    const { log, lines } = logger()
    log.info('started', { port: 1, list: [1, 'a'], nothing: null, absent: undefined })
    expect(lines).toEqual([`{"time":"${TIME}","level":"info","message":"started","port":1,"list":[1,"a"],"nothing":null}\n`])
  })

  test('are text at a terminal, with colours unless NO_COLOR is set', () => {
    const { log, lines } = logger({ isTTY: true, component: 'http' })
    log.warn('slow request', { path: '/a b', ms: 12, deep: { x: 1 } })
    expect(lines).toEqual([
      `${TIME} \u001b[33mWARN \u001b[39m [http] slow request \u001b[90mpath=\u001b[39m"/a b" \u001b[90mms=\u001b[39m12 \u001b[90mdeep=\u001b[39m{"x":1}\n`,
    ])
    const plain = logger({ isTTY: true, noColor: '1' })
    plain.log.error('x')
    expect(plain.lines).toEqual([`${TIME} ERROR x\n`])
  })

  test('have the chosen format, without colours where the stream is not a terminal', () => {
    const { log, lines } = logger({ format: 'text' })
    log.info('x', { a: 'b' })
    expect(lines).toEqual([`${TIME} INFO  x a=b\n`])
    const json = logger({ format: 'json', isTTY: true })
    json.log.info('x')
    expect(json.records()).toHaveLength(1)
  })

  test('below the level are not written, and their fields are not read', () => {
    const { log, lines } = logger({ level: 'warn' })
    const trap = {
      get value(): never {
        throw new Error('read')
      },
    }
    log.debug('a', trap)
    log.info('b', trap)
    log.warn('c')
    log.error('d')
    expect(lines).toHaveLength(2)
  })

  test('share one level among a logger and its children', () => {
    const { log, records } = logger()
    const child = log.child('store')
    child.child('inner').setLevel('debug')
    log.debug('a')
    child.debug('b')
    log.child('x').child('y').debug('c')
    log.setLevel('error')
    child.warn('d')
    expect(records().map(({ component, message }) => [component, message])).toEqual([
      [undefined, 'a'],
      ['store', 'b'],
      ['y', 'c'],
    ])
  })

  test('rename a field that has the name of a member of the line', () => {
    expect(fieldsOf({ message: 'x', level: 'y', time: 1, other: 2 })).toEqual({ message_: 'x', level_: 'y', time_: 1, other: 2 })
  })

  test('spell out C1 and bidirectional controls, also in JSON', () => {
    for (const format of ['text', 'json'] as const) {
      const { log, lines } = logger({ format })
      log.info('a\u009b31m', { name: 'b\u202ec\u007f' })
      expect(lines[0]).not.toMatch(/(?!\n)[\p{Cc}\p{Cf}]/u)
      expect(lines[0]).toMatch(/a\\u009b31m.*b\\u202ec\\u007f/)
    }
  })

  test('cannot pretend to be two lines or command a terminal', () => {
    for (const format of ['text', 'json'] as const) {
      const { log, lines } = logger({ format })
      log.info('a\nERROR b\r\u001b[2J', { 'k\n': 'v\n\u001b[31m\u2028', x: ['\n'] })
      expect(lines).toHaveLength(1)
      // biome-ignore lint/suspicious/noControlCharactersInRegex: the line must not contain these characters
      expect(lines[0]).toMatch(/^[^\u0000-\u001f\u007f-\u009f]*\n$/)
    }
  })
})

describe('redaction', () => {
  test.each(['json', 'text'] as const)('masks a configured secret that is escaped in the line (%s)', (format) => {
    const plain = 'pa"ss\\word\n1'
    const { log, lines } = logger({ format, secrets: () => [new Secret(plain)] })
    log.info(`m ${plain}`, { field: `with ${plain}`, deep: [{ x: plain }], error: new Error(plain) })
    expect(lines.join('')).not.toMatch(/pa|word/)
  })

  test('masks a Secret at any depth', () => {
    const { log, lines } = logger({ format: 'text' })
    const secret = new Secret('hunter2')
    log.info(`m ${secret}`, { secret, deep: [{ x: secret }], map: new Map([['a', secret]]), error: new Error(`with ${secret}`) })
    expect(lines.join()).not.toContain('hunter2')
  })

  test.each([
    'token',
    'access_token',
    'apiKey',
    'api_key',
    'API-KEY',
    'Authorization',
    'cookie',
    'set-cookie',
    'password',
    'webhook_secret',
    'private_key',
    'pairing_code',
    'x-hub-signature',
  ])('masks a value under the name of a credential: %s', (name) => {
    expect(fieldsOf({ [name]: 'hunter2', deep: { [name]: ['hunter2'] }, number: { [name]: 12 } })).toEqual({
      [name]: '[secret]',
      deep: { [name]: '[secret]' },
      number: { [name]: '[secret]' },
    })
  })

  test('shows counters, flags and null under such a name', () => {
    expect(fieldsOf({ input_tokens: 5, max_output_tokens: 7, has_token: true, token: null })).toEqual({
      input_tokens: 5,
      max_output_tokens: 7,
      has_token: true,
      token: null,
    })
  })

  test.each([
    ['Authorization: Bearer abcdefgh12345', 'Authorization: Bearer [secret]'],
    ['basic dXNlcjpwYXNzd29yZA==', 'basic [secret]'],
    [`sluice_${'0af9'.repeat(16)} was used`, '[secret] was used'],
    ['key sk-ant-api03-abcdefghijklmnop.', 'key [secret].'],
    ['ghp_abcdefghijklmnopqrst', '[secret]'],
    ['https://me:hunter2@host/x', 'https://me:[secret]@host/x'],
    ['/webhook?a=1&token=hunter2&b=2', '/webhook?a=1&token=[secret]&b=2'],
    ['?api_key=hunter2', '?api_key=[secret]'],
    ['eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abcdefgh12345', '[secret]'],
    ['sluice_http_requests_total', 'sluice_http_requests_total'],
    ['the bearer of news', 'the bearer of news'],
  ])('masks a credential inside a text, in the message and in fields: %s', (text, redacted) => {
    const { log, records } = logger()
    log.error(text, { text })
    expect(records()).toMatchObject([{ message: redacted, text: redacted }])
    expect(fieldsOf({ error: new Error(text) })).toMatchObject({ error: { message: redacted } })
  })

  test('takes linear time for hostile text', { timeout: 60_000 }, () => {
    for (const text of ['a://'.repeat(50_000), '?'.repeat(200_000), 'bearer '.repeat(30_000), 'eyJ'.repeat(70_000), '-'.repeat(200_000)])
      fieldsOf({ text })
  })
})

describe('errors', () => {
  test('show name, code and causes, and the stack only at level debug', () => {
    const error = new AppError('upstream', 'no answer', { cause: Object.assign(new TypeError('socket'), { code: 'ECONNRESET' }) })
    expect(fieldsOf({ error })).toEqual({
      error: {
        name: 'AppError',
        message: 'no answer',
        code: 'upstream',
        cause: { name: 'TypeError', message: 'socket', code: 'ECONNRESET' },
      },
    })
    expect(fieldsOf({ error }, { level: 'debug' })).toMatchObject({ error: { stack: expect.stringContaining('log.test') } })
  })

  test('show a circle of causes once', () => {
    const error: Error & { cause?: unknown } = new Error('a')
    error.cause = new Error('b', { cause: error })
    expect(fieldsOf({ error })).toMatchObject({ error: { message: 'a', cause: { message: 'b', cause: '[circular]' } } })
  })
})

describe('values of every kind', () => {
  test('have a printed form', () => {
    const circular: Record<string, unknown> = {}
    circular.self = circular
    expect(
      fieldsOf({
        bigint: 12n,
        symbol: Symbol('s'),
        date: new Date(0),
        url: new URL('http://h/?token=x1'),
        bytes: new Uint8Array(3),
        map: new Map([['a', 1]]),
        set: new Set([1]),
        nan: Number.NaN,
        circular,
      }),
    ).toEqual({
      bigint: '12',
      symbol: 'Symbol(s)',
      date: '1970-01-01T00:00:00.000Z',
      url: 'http://h/?token=[secret]',
      bytes: '[3 bytes]',
      map: { a: 1 },
      set: [1],
      nan: 'NaN',
      circular: { self: '[circular]' },
    })
  })

  test('make a line of bounded size', { timeout: 60_000 }, () => {
    const wide = (depth: number): unknown => (depth === 0 ? 'x'.repeat(10_000) : Array.from({ length: 60 }, () => wide(depth - 1)))
    for (const format of ['text', 'json'] as const) {
      const { log, lines } = logger({ format })
      log.info('x'.repeat(1_000_000), { wide: wide(2), many: Object.fromEntries(Array.from({ length: 5000 }, (_, i) => [`k${i}`, i])) })
      expect(lines[0]?.length).toBeLessThan(70_000)
    }
  })

  test('never make logging throw, even if they cannot be printed or written', () => {
    const { log, lines } = logger()
    const hostile = new Proxy(
      {},
      {
        ownKeys() {
          throw new Error('no')
        },
      },
    )
    const traps = [
      hostile,
      { hostile },
      {
        get trap(): never {
          throw new Error('no')
        },
      },
      {
        x: {
          toJSON: () => {
            throw new Error('no')
          },
        },
      },
      { error: Object.assign(new Error('x'), { message: 5 }) },
      null,
    ]
    for (const fields of traps) log.error('m', fields as Record<string, unknown>)
    log.error(undefined as unknown as string)
    expect(lines).toHaveLength(traps.length + 1)
    const broken = createLogger({
      level: 'info',
      format: 'json',
      clock,
      stream: {
        write() {
          throw new Error('EPIPE')
        },
      },
    })
    expect(() => broken.info('x')).not.toThrow()
  })

  test('make exactly one line of JSON', () => {
    fc.assert(
      fc.property(
        fc.string(),
        fc.dictionary(fc.string(), fc.anything({ withBigInt: true, withDate: true, withMap: true, withSet: true, withTypedArray: true })),
        (message, fields) => {
          const { log, records } = logger()
          log.info(message, fields)
          expect(records()).toHaveLength(1)
        },
      ),
    )
  })
})

describe('repeats', () => {
  test('pass 20 times a minute; one line reports the others at its end, even if nothing follows', async () => {
    const own = testClock()
    const { log, records } = logger({ clock: own })
    for (let count = 0; count < 50; count++) log.warn('full', { disk: 'a' })
    log.warn('full', { disk: 'b' })
    log.child('x').warn('full', { disk: 'a' })
    expect(records()).toHaveLength(22)
    await own.advance(60_000)
    expect(records()).toHaveLength(23)
    expect(records().at(-1)).toMatchObject({ level: 'warn', message: 'full', disk: 'a', repeated: 30, repeated_secs: 60 })
    log.warn('full', { disk: 'a' })
    expect(records().at(-1)).not.toHaveProperty('repeated')
    await own.advance(120_000)
    expect(records()).toHaveLength(24)
  })

  test('of long lines are limited in the same way', () => {
    const { log, records } = logger()
    for (let count = 0; count < 50; count++) log.error('full', { cause: 'x'.repeat(2000) })
    expect(records()).toHaveLength(20)
  })

  test('of warnings with other fields are limited too, and fields of other lines are not', async () => {
    const own = testClock()
    const { log, records } = logger({ clock: own })
    for (let count = 0; count < 500; count++) log.warn('a request was answered with an error', { peer: count })
    for (let count = 0; count < 500; count++) log.info('a turn ended', { turn: count })
    log.warn('another warning')
    expect(records()).toHaveLength(200 + 500 + 1)
    await own.advance(60_000)
    expect(records().at(-1)).toMatchObject({ message: 'a request was answered with an error', repeated: 300, repeated_secs: 60 })
    expect(records().at(-1)).not.toHaveProperty('peer')
    log.warn('a request was answered with an error', { peer: 'next' })
    expect(records().at(-1)).toMatchObject({ peer: 'next' })
  })

  test('are forgotten after many other lines, so that memory is bounded', () => {
    const { log, lines } = logger()
    for (let count = 0; count < 30; count++) log.info('one')
    for (let count = 0; count < 300; count++) log.info(`other ${count}`)
    log.info('one')
    expect(lines).toHaveLength(20 + 300 + 1)
  })
})

test('masks a secret before it cuts a long text', () => {
  const secret = 'canary-0123456789-abcdefgh'
  for (let at = 8192 - 40; at < 8192 + 4; at++) {
    const { log, lines } = logger({ secrets: () => [new Secret(secret)] })
    const text = `${'x'.repeat(at)}${secret}`
    log.error(text, { text, error: new Error(text), list: [text] })
    expect(lines.join('')).not.toContain('canary')
  }
})
