import { AppError, Secret, sha256Hex } from '@sluice/sdk'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { decrypt, encrypt, load, SAMPLE_SECTIONS } from '../testing/sample-sections.ts'
import { formatKeyPath } from '../toml/key-path.ts'
import { findPlainSecret, getValue, setValues } from './edit-config.ts'

const options = { file: 'config.toml', sections: SAMPLE_SECTIONS, env: {}, encrypt, decrypt }
const set = async (text: string, path: string, value: string | undefined) =>
  (await setValues({ ...options, text, changes: [{ path, value }] })).text
const get = async (text: string, path: string) => getValue(await load(text), SAMPLE_SECTIONS, path)
const refused = (code: string, message: string) => expect.objectContaining({ code, message: expect.stringContaining(message) })

describe('set', () => {
  test('refuses a file in another encoding, whose text would be lost', async () => {
    const text = Buffer.from('# caf\u00e9\n[gateway]\nport = 1\n', 'latin1').toString('utf8')
    await expect(set(text, 'gateway.port', '2')).rejects.toEqual(refused('config_invalid', 'config.toml:1:6: the file is not in UTF-8'))
    expect(await get(await set('', 'agent.system_prompt', 'a\ufffdb'), 'agent.system_prompt')).toBe('a\ufffdb')
  })

  test.each([
    ['backup.passphrase', '"\ufffd"', '\ufffd'],
    ['agent.system_prompt', "'a\ufffd\\d'", 'a\ufffd\\d'],
    ['agent.system_prompt', '"""\n\ufffd\u{10fffc}"""', '\ufffd\u{10fffc}'],
    ['gateway.allowed_hosts', '["a\ufffd", # \ufffd\n"b"]', ['a\ufffd', 'b']],
    ['provider.headers."a\ufffd\u007f"', '"x"', 'x'],
  ])('keeps a replacement character and DEL: %j = %j', async (path, value, expected) => {
    const found = await get(await set('', path, value), path)
    expect(found instanceof Secret ? found.reveal() : found).toEqual(expected)
  })

  test.each([
    [
      'a value is replaced, its comment stays',
      '[gateway] # a\n  port = 1 # b\n# c\n',
      'gateway.port',
      '2',
      '[gateway] # a\n  port = 2 # b\n# c\n',
    ],
    [
      'a value of several lines is replaced as a whole',
      '[gateway]\nallowed_hosts = [\n "a", # a\n] # c\nport = 1\n',
      'gateway.allowed_hosts',
      '["b"]',
      '[gateway]\nallowed_hosts = ["b"] # c\nport = 1\n',
    ],
    [
      'a key joins its table, indented like the others',
      '[gateway]\n  port = 1 # b\n\n[log]\n',
      'gateway.host',
      'x',
      '[gateway]\n  port = 1 # b\n  host = "x"\n\n[log]\n',
    ],
    ['a key joins an empty table', '[gateway] # a\n\n[log]\n', 'gateway.host', 'x', '[gateway] # a\nhost = "x"\n\n[log]\n'],
    [
      'a key joins a table behind a value of several lines',
      '[gateway]\nhost = """\na"""\n',
      'gateway.port',
      '2',
      '[gateway]\nhost = """\na"""\nport = 2\n',
    ],
    [
      'a table is made at the end',
      '# head\n[log]\nlevel = "info"\n',
      'gateway.port',
      '2',
      '# head\n[log]\nlevel = "info"\n\n[gateway]\nport = 2\n',
    ],
    ['a table is made in an empty file', '', 'security.policy.level', 'full', '[security.policy]\nlevel = "full"\n'],
    ['a line end that is missing is added', '[log]\nlevel = "info"', 'gateway.port', '2', '[log]\nlevel = "info"\n\n[gateway]\nport = 2\n'],
    ['the line ends of the file are kept', '[gateway]\r\nport = 1\r\n', 'gateway.host', 'x', '[gateway]\r\nport = 1\r\nhost = "x"\r\n'],
    ['a byte order mark is kept', '\ufeff[gateway]\nport = 1\n', 'gateway.port', '2', '\ufeff[gateway]\nport = 2\n'],
    ['a dotted key is replaced', 'gateway.port = 1\n', 'gateway.port', '2', 'gateway.port = 2\n'],
    ['a key joins dotted ones', 'gateway.port = 1 # b\n[log]\n', 'gateway.host', 'x', 'gateway.port = 1 # b\ngateway.host = "x"\n[log]\n'],
    [
      'a section joins a parent made of dotted keys',
      'security.policy.level = "full"\n',
      'security.sandbox.enabled',
      'false',
      'security.policy.level = "full"\nsecurity.sandbox.enabled = false\n',
    ],
    ['a key joins an inline table', 'gateway = { port = 1 }\n', 'gateway.host', 'x', 'gateway = { port = 1, host = "x" }\n'],
    ['a key joins an empty inline table', 'gateway = {} # a\n', 'gateway.host', 'x', 'gateway = { host = "x" } # a\n'],
    [
      'a dotted key joins the dotted keys of an inline table',
      'provider = { headers.a = "1" }\n',
      'provider.headers.b',
      'x',
      'provider = { headers.a = "1", headers.b = "enc:provider.headers.b:x" }\n',
    ],
    [
      'a name with other characters is quoted',
      '[provider]\n',
      'provider.headers."a b"',
      'x',
      '[provider]\nheaders."a b" = "enc:provider.headers.\\"a b\\":x"\n',
    ],
    [
      'a table is made before the tables below it, and before their comments',
      '[log]\n\n# fb\n[[provider.fallback]]\nkind = "a"\n',
      'provider.model',
      'm',
      '[log]\n\n[provider]\nmodel = "m"\n\n# fb\n[[provider.fallback]]\nkind = "a"\n',
    ],
    [
      'an entry of a list of tables is edited',
      '[[provider.fallback]]\nkind = "a"\n[[provider.fallback]]\nkind = "b"\n',
      'provider.fallback[1].kind',
      'c',
      '[[provider.fallback]]\nkind = "a"\n[[provider.fallback]]\nkind = "c"\n',
    ],
    [
      'the first entry starts a list of tables',
      '[provider]\nmodel = "m"\n',
      'provider.fallback[0].kind',
      'a',
      '[provider]\nmodel = "m"\n\n[[provider.fallback]]\nkind = "a"\n',
    ],
    [
      'a list of tables grows behind its last entry',
      '[[provider.fallback]]\nkind = "a"\n[provider.fallback.headers]\nx = "1"\n\n[log]\n',
      'provider.fallback[1].kind',
      'b',
      '[[provider.fallback]]\nkind = "a"\n[provider.fallback.headers]\nx = "1"\n\n[[provider.fallback]]\nkind = "b"\n\n[log]\n',
    ],
    [
      'a key joins a table below an entry',
      '[[provider.fallback]]\nkind = "a"\n[provider.fallback.headers]\nx = "1"\n[[provider.fallback]]\nkind = "b"\n',
      'provider.fallback[0].headers.y',
      '2',
      '[[provider.fallback]]\nkind = "a"\n[provider.fallback.headers]\nx = "1"\ny = "enc:provider.fallback.headers.y:2"\n[[provider.fallback]]\nkind = "b"\n',
    ],
    [
      'a list of tables begins inline where a header cannot stand',
      'provider.model = "m"\n',
      'provider.fallback[0].kind',
      'a',
      'provider.model = "m"\nprovider.fallback = [{ kind = "a" }]\n',
    ],
    [
      'an inline list of tables grows',
      '[provider]\nfallback = [{ kind = "a" }]\n',
      'provider.fallback[1].kind',
      'b',
      '[provider]\nfallback = [{ kind = "a" }, { kind = "b" }]\n',
    ],
    ['the first entry starts a list', '[gateway]\n', 'gateway.allowed_hosts[0]', 'a', '[gateway]\nallowed_hosts = ["a"]\n'],
    [
      'a list grows',
      '[gateway]\nallowed_hosts = [\n  "a", # one\n]\n',
      'gateway.allowed_hosts[1]',
      'b',
      '[gateway]\nallowed_hosts = [\n  "a", "b", # one\n]\n',
    ],
    ['an empty list grows', '[gateway]\nallowed_hosts = [ ]\n', 'gateway.allowed_hosts[0]', 'b', '[gateway]\nallowed_hosts = [ "b"]\n'],
    ['a table of any names gets one', '[aliases]\na = "b"\n', 'aliases.c', 'd', '[aliases]\na = "b"\nc = "d"\n'],
    [
      'a whole table is set inline',
      '',
      'cost.prices."gpt-4.1"',
      '{ input = 1, output = 2 }',
      '[cost]\nprices."gpt-4.1" = { input = 1, output = 2 }\n',
    ],
  ])('%s', async (_, before, path, value, after) => {
    const text = await set(before, path, value)
    expect(text).toBe(after)
    expect(await get(text, path)).toBeDefined()
  })

  test.each([
    ['agent.system_prompt', 'localhost', 'localhost'],
    ['agent.system_prompt', '"quoted"', 'quoted'],
    ['agent.system_prompt', "'literal\\n'", 'literal\\n'],
    ['agent.system_prompt', '8080', '8080'],
    ['agent.system_prompt', 'true', 'true'],
    ['agent.system_prompt', 'say "hi" \\ # x', 'say "hi" \\ # x'],
    ['agent.system_prompt', 'a\nport = 1', 'a\nport = 1'],
    ['agent.system_prompt', '\u007f\u0000é👩‍👩‍👧', '\u007f\u0000é👩‍👩‍👧'],
    ['log.level', 'debug', 'debug'],
    ['gateway.port', '0x1F', 31],
    ['gateway.port', ' 1_000 # c', 1000],
    ['agent.temperature', '1.5', 1.5],
    ['gateway.require_pairing', 'false', false],
    ['gateway.allowed_hosts', '["a", "b"]', ['a', 'b']],
    ['channels_config.roomchat.on_error', '["x"]', ['x']],
  ])('accepts a TOML value, or plain text for a text: %s = %j', async (path, value, found) => {
    const text = path.startsWith('channels') ? '[channels_config.roomchat]\nbase_url = "https://x.example"\napp_token = "t"\n' : ''
    expect(await get(await set(text, path, value), path)).toEqual(found)
  })

  test('encrypts a secret for its place, also inside a table that is set as a whole', async () => {
    const result = await setValues({ ...options, text: '', changes: [{ path: 'backup.passphrase', value: 'top' }] })
    expect(result).toEqual({ text: '[backup]\npassphrase = "enc:backup.passphrase:top"\n', secrets: [true] })
    expect(await get(result.text, 'backup.passphrase')).toEqual(new Secret('top'))
    expect(await set('', 'provider.fallback', '[{ kind = "a", api_key = "one" }]')).toBe(
      '[provider]\nfallback = [{ kind = "a", api_key = "enc:provider.fallback.api_key:one" }]\n',
    )
  })

  test('sets several keys together that are valid only together', async () => {
    const base = { path: 'channels_config.roomchat.base_url', value: 'https://chat.example' }
    const token = { path: 'channels_config.roomchat.app_token', value: 'top' }
    await expect(setValues({ ...options, text: '', changes: [base] })).rejects.toEqual(refused('config_invalid', 'app_token` is missing'))
    expect(await setValues({ ...options, text: '', changes: [base, token] })).toEqual({
      text: '[channels_config.roomchat]\nbase_url = "https://chat.example"\napp_token = "enc:channels_config.roomchat.app_token:top"\n',
      secrets: [false, true],
    })
    await expect(setValues({ ...options, text: '', changes: [base, token, { path: 'gateway.port', value: 'x' }] })).rejects.toEqual(
      refused('invalid_request', '`gateway.port` must be'),
    )
  })

  test('finds a plain-text secret and the change that encrypts it', async () => {
    const text =
      '[provider]\nkind = "a"\napi_key = "sk-\\"1\\"" # mine\nmodel = "m"\n[[provider.fallback]]\nkind = "a"\napi_key = \'one\'\n'
    const seal = async (path: string) => {
      const { sealing } = await findPlainSecret({ ...options, text }, path)
      return sealing && (await setValues({ ...options, text, changes: [sealing] })).text
    }
    expect(await seal('provider.api_key')).toContain('api_key = "enc:provider.api_key:sk-\\"1\\"" # mine\n')
    expect(await seal('provider.fallback[0].api_key')).toContain('api_key = "enc:provider.fallback.api_key:one"\n')
    const find = (path: string, given = text) => findPlainSecret({ ...options, text: given }, path)
    expect(await find('provider.model')).toEqual({ secret: false })
    expect(await find('gateway.webhook_secret')).toEqual({ secret: true })
    for (const value of [encrypt('a', 'gateway.webhook_secret'), ' ']) {
      expect(await find('gateway.webhook_secret', `[gateway]\nwebhook_secret = "${value}"\n`)).toEqual({ secret: true })
    }
    await expect(find('gateway.secret')).rejects.toEqual(refused('invalid_request', 'is not a known key'))
  })

  test('writes the hash of a secret that is only compared, in place of the secret', async () => {
    const before = '[gateway]\nport = 1\nwebhook_secret = "old"\n'
    const after = await set(before, 'gateway.webhook_secret', ' shh ')
    expect(after).toBe(`[gateway]\nport = 1\nwebhook_secret_sha256 = "${sha256Hex('shh')}"\n`)
    expect(await set(after, 'gateway.webhook_secret', 'new')).toBe(after.replace(sha256Hex('shh'), sha256Hex('new')))
    await expect(set('', 'gateway.webhook_secret_sha256', 'shh')).rejects.toEqual(refused('invalid_request', '64 hexadecimal digits'))
  })

  test('keeps a value that is already encrypted', async () => {
    const sealed = encrypt('top', 'gateway.webhook_secret')
    expect(await set('', 'gateway.webhook_secret', sealed)).toContain(`"${sealed}"`)
    await expect(set('', 'gateway.webhook_secret', 'enc:elsewhere:top')).rejects.toEqual(refused('config_invalid', 'cannot be decrypted'))
  })

  test.each([
    ['gateway.prot', '1', 'invalid_request', '`gateway.prot` is not a known key; did you mean `port`?'],
    ['gatway.port', '1', 'invalid_request', '`gatway` is not a known key; did you mean `gateway`?'],
    ['gateway', '{}', 'invalid_request', '[gateway] is a section'],
    ['channels_config', '{}', 'invalid_request', 'is a section'],
    ['gateway.port.x', '1', 'invalid_request', '`gateway.port.x` is not a known key'],
    ['gateway.port', 'abc', 'invalid_request', '`gateway.port` must be a whole number between 0 and 65535'],
    ['gateway.port', '70000', 'invalid_request', 'got 70000'],
    ['gateway.port', '1\n[log]', 'invalid_request', 'must be a whole number'],
    ['gateway.port', '', 'invalid_request', 'must be a whole number'],
    ['log.level', 'loud', 'invalid_request', 'must be one of "debug"'],
    ['gateway.webhook_secret', '', 'invalid_request', 'must be a string that is not blank'],
    ['gateway.webhook_secret', ' \n', 'invalid_request', 'must be a string that is not blank'],
    ['gateway.allowed_hosts', 'a', 'invalid_request', 'must be an array of strings'],
    ['provider.fallback[1].kind', 'a', 'invalid_request', 'leaves a gap'],
    ['provider.fallback[0].model', 'm', 'config_invalid', '`provider.fallback[0].kind` is missing'],
    ['a..b', '1', 'invalid_request', 'is not a key'],
    ['channels_config.telegram.bot_token', 'x', 'not_compiled', 'belongs to channel-telegram'],
    ['observability.otel_endpoint', 'x', 'not_compiled', 'belongs to observability-otel'],
  ])('refuses a wrong value: %s = %j', async (path, value, code, message) => {
    await expect(set('', path, value)).rejects.toEqual(refused(code, message))
  })

  test('does not rewrite a table that the file writes in its own way', async () => {
    await expect(set('[cost.prices.x]\ninput = 1\noutput = 2\n', 'cost.prices', '{}')).rejects.toEqual(
      refused('invalid_request', 'one by one'),
    )
  })

  test('does not change an invalid file', async () => {
    await expect(set('[gateway]\nhost = x\n', 'gateway.port', '1')).rejects.toEqual(refused('config_invalid', 'config.toml:2:8'))
    await expect(set('[gateway]\nhots = "x"\n', 'gateway.port', '1')).rejects.toEqual(refused('config_invalid', '`gateway.hots`'))
  })
})

describe('unset', () => {
  test.each([
    ['a key is removed with its line and its comment', '[gateway]\nport = 1 # b\nhost = "x"\n', 'gateway.port', '[gateway]\nhost = "x"\n'],
    [
      'a value of several lines is removed whole',
      '[gateway]\nallowed_hosts = [\n "a",\n] # c\nport = 1\n',
      'gateway.allowed_hosts',
      '[gateway]\nport = 1\n',
    ],
    ['removing an absent key changes nothing', '[gateway]\nport = 1\n', 'gateway.host', '[gateway]\nport = 1\n'],
    ['a section is removed with its header', '# a\n[gateway]\nport = 1\n\n# b\n[log]\n', 'gateway', '# a\n# b\n[log]\n'],
    [
      'a section is removed wherever its parts are',
      'gateway.port = 1\n[log]\n[provider]\nheaders.a = "1"\nheaders.b = "2"\n',
      'provider',
      'gateway.port = 1\n[log]\n',
    ],
    [
      'a dotted table is removed with every key',
      '[provider]\nheaders.a = "1"\nmodel = "m"\nheaders.b = "2"\n',
      'provider.headers',
      '[provider]\nmodel = "m"\n',
    ],
    ['the first key of an inline table is removed', 'gateway = { port = 1, host = "x" }\n', 'gateway.port', 'gateway = { host = "x" }\n'],
    ['the last key of an inline table is removed', 'gateway = { port = 1, host = "x" }\n', 'gateway.host', 'gateway = { port = 1 }\n'],
    ['the only key of an inline table is removed', 'gateway = { port = 1 }\n', 'gateway.port', 'gateway = {  }\n'],
    [
      'dotted keys of an inline table are removed',
      'provider = { headers.a = "1", headers.b = "2", model = "m" }\n',
      'provider.headers',
      'provider = { model = "m" }\n',
    ],
    [
      'an entry of a list is removed',
      '[gateway]\nallowed_hosts = ["a", "b", "c"]\n',
      'gateway.allowed_hosts[1]',
      '[gateway]\nallowed_hosts = ["a", "c"]\n',
    ],
    [
      'an entry of a list of tables is removed with its subtables only',
      '[[provider.fallback]]\nkind = "a"\n[provider.fallback.headers]\nx = "1"\n[[provider.fallback]]\nkind = "b"\n',
      'provider.fallback[0]',
      '[[provider.fallback]]\nkind = "b"\n',
    ],
    [
      'a whole list of tables is removed',
      '[log]\n[[provider.fallback]]\nkind = "a"\n[[provider.fallback]]\nkind = "b"\n',
      'provider.fallback',
      '[log]\n',
    ],
    ['an unknown key can be removed', '[gateway]\nprot = 1\n', 'gateway.prot', '[gateway]\n'],
  ])('%s', async (_, before, path, after) => {
    expect(await set(before, path, undefined)).toBe(after)
  })

  test('refuses to remove a table with too many parts', async () => {
    const many = (count: number) => `[provider]\n${Array.from({ length: count }, (_, index) => `headers.h${index} = "x"\n`).join('')}`
    expect(await set(many(50), 'provider.headers', undefined)).toBe('[provider]\n')
    await expect(set(many(501), 'provider.headers', undefined)).rejects.toEqual(refused('invalid_request', 'too many parts'))
  })

  test('keeps a required key', async () => {
    const text = '[channels_config.mailpush]\ntopic = "t"\n'
    await expect(set(text, 'channels_config.mailpush.topic', undefined)).rejects.toEqual(refused('config_invalid', 'is missing'))
    expect(await set(text, 'channels_config.mailpush', undefined)).toBe('')
  })
})

describe('get', () => {
  test('returns the effective value with defaults and environment', async () => {
    const config = await load('[gateway]\nport = 1\n', { env: { SVC_GATEWAY_HOST: 'h' } })
    const read = (path: string) => getValue(config, SAMPLE_SECTIONS, path)
    expect([read('gateway.port'), read('gateway.host'), read('gateway.max_connections')]).toEqual([1, 'h', 10_000])
    expect(read('gateway.trusted_proxies[0]')).toBe('127.0.0.0/8')
    expect(read('observability.metrics_loopback_only')).toBe(false)
    expect(read('observability.backend')).toBe('none')
    expect(read('agent.workspace')).toBeUndefined()
    expect(read('channels_config.mailpush.topic')).toBeUndefined()
    expect(read('provider.fallback[3].kind')).toBeUndefined()
  })

  test('refuses an unknown key as set does', async () => {
    const config = await load('')
    expect(() => getValue(config, SAMPLE_SECTIONS, 'gateway.prot')).toThrow(refused('invalid_request', 'did you mean `port`'))
    expect(() => getValue(config, SAMPLE_SECTIONS, 'browser.enabled')).toThrow(refused('not_compiled', 'tool-browser'))
  })
})

describe('any file', () => {
  /** Files with the same content in different notations, with comments everywhere. */
  const blocks = fc.shuffledSubarray([
    '# gateway\n[gateway] # g\n  host = "h" # hh\n  # inner\n\tallowed_hosts = [ # open\n    "a", # one\n    "b"\n  ] # close\n',
    '[security] # s\nsandbox = { enabled = true } # sb\n',
    '[agent]\nsystem_prompt = """\n[gateway]\nport = 5 # not this\n""" # end\n',
    '[cost.prices."gpt-4.1"] # p\ninput = 1 # i\noutput = 2\n',
    '[[provider.fallback]] # one\nkind = "a"\n[provider.fallback.headers]\nx = "1" # x\n\n\n[[provider.fallback]]\nkind = "b" # two\n',
    '[log]',
  ])
  const file = fc
    .tuple(blocks, fc.constantFrom('\n', '\r\n'), fc.boolean())
    .map(([parts, line, ends]) => `${parts.join('\n\n').replaceAll('\n', line)}${ends ? line : ''}`)
  // Characters that TOML must escape are rare among all.
  const grapheme = fc.string({ minLength: 1, maxLength: 1, unit: 'grapheme' })
  const character = fc.oneof({ weight: 9, arbitrary: grapheme }, fc.constantFrom('\ufffd', '\u007f', '"', '\\'))
  const text = fc.array(character, { minLength: 1, maxLength: 10 }).map((characters) => characters.join(''))
  const change = fc.oneof(
    fc.tuple(fc.constantFrom('provider.model', 'agent.workspace', 'provider.fallback[0].model'), text),
    fc.tuple(fc.constantFrom('gateway.port', 'agent.max_iterations'), fc.integer({ min: 1, max: 100 })),
    fc.tuple(fc.constantFrom('gateway.require_pairing', 'security.sandbox.enabled', 'security.sandbox.required'), fc.boolean()),
    fc.tuple(
      text.map((name) => formatKeyPath(['provider', 'headers', name])),
      fc.string({ minLength: 1, unit: 'grapheme-ascii' }).filter((value) => value.trim() !== '' && !value.startsWith('enc:')),
    ),
    fc
      .tuple(fc.constantFrom('security.policy.level', 'log.level'), fc.constant('full'))
      .map(([path, value]) => [path, path === 'log.level' ? 'warn' : value] as const),
    fc.tuple(
      fc.constant('backup.passphrase'),
      text.filter((secret) => secret.trim() !== ''),
    ),
  )
  const isReserved = (path: string) => /__proto__|prototype|constructor/.test(path)

  test('reads back the value that was set and changes no other line', async () => {
    await fc.assert(
      fc.asyncProperty(file, change, async (before, [path, value]) => {
        fc.pre(!isReserved(path) && (before.includes('fallback') || !path.includes('[')))
        // Quoted, because a text may look like TOML.
        const after = await set(
          before,
          path,
          typeof value === 'string' ? JSON.stringify(value).replaceAll('\u007f', '\\u007f') : String(value),
        )
        const found = await get(after, path)
        expect(found instanceof Secret ? found.reveal() : found).toEqual(value)
        const lines = after.split('\n')
        const kept = before.split('\n').filter((line) => {
          const at = lines.indexOf(line)
          if (at >= 0) lines.splice(0, at + 1)
          return at >= 0
        })
        expect(before.split('\n').length - kept.length).toBeLessThanOrEqual(1)
      }),
      { numRuns: 200 },
    )
  })

  test('restores the file, except for a header, when a set key is removed', async () => {
    await fc.assert(
      fc.asyncProperty(
        file,
        fc.constantFrom('gateway.port', 'agent.workspace', 'log.format', 'provider.fallback[1].model'),
        async (before, path) => {
          fc.pre(before.includes('fallback') || !path.includes('['))
          const after = await set(
            await set(before, path, path.endsWith('port') ? '1' : path.endsWith('format') ? 'json' : 'x'),
            path,
            undefined,
          )
          expect(after.startsWith(before) || after.startsWith(before.trimEnd())).toBe(true)
          expect(after.slice(before.length)).toMatch(/^\s*(\[[a-z]+\])?\s*$/)
        },
      ),
    )
  })

  test('throws only refusals for any value, and the result loads', async () => {
    const anything = fc.oneof(text, fc.constantFrom('{}', '[]', '[{}]', '1', 'true', '"x"', '{ x = 1 }', '1979-05-27', '[['))
    const paths = fc.constantFrom(
      'gateway.port',
      'gateway.host',
      'provider.fallback',
      'provider.fallback[0]',
      'provider.headers',
      'cost.prices',
      'aliases.x',
      'provider',
      'x.y',
    )
    await fc.assert(
      fc.asyncProperty(fc.oneof(file, fc.string()), paths, anything, async (before, path, value) => {
        const outcome = await set(before, path, value).catch((error: unknown) => {
          if (error instanceof AppError) return undefined
          throw error
        })
        if (outcome !== undefined) await load(outcome)
      }),
      { numRuns: 200 },
    )
  })
})
