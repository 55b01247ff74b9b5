import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { AppError, type Secret, secretText } from '@sluice/sdk'
import fc from 'fast-check'
import * as v from 'valibot'
import { describe, expect, test } from 'vitest'
import { approvalsSection, CORE_SECTIONS, gatewaySection, observabilitySection } from '../sections/core-sections.ts'
import { TARGETS } from '../sections/notification-targets.ts'
import { encrypt, load } from '../testing/sample-sections.ts'
import type { OwnedSection } from '../types.ts'

const ROOMCHAT = '[channels_config.roomchat]\nbase_url = "https://chat.example"\napp_token = "plain-token"\n'
const port = async (text: string, env: Record<string, string> = {}) => (await load(text, { env })).core(gatewaySection).port
const problem = (message: string) => expect.objectContaining({ code: 'config_invalid', message: expect.stringContaining(message) })

describe('states', () => {
  test('uses every default without a file', async () => {
    const config = await load(undefined)
    expect(config.core(gatewaySection)).toMatchObject({ host: '127.0.0.1', port: 42_617, require_pairing: true, allowed_hosts: [] })
    expect(config).toMatchObject({ file: 'config.toml', leftOut: [], warnings: [] })
    for (const section of CORE_SECTIONS) expect(config.core(section)).toBeTypeOf('object')
  })

  test.each(['', '\n\n', '# nothing but a comment\n', '\ufeff'])('treats a file without settings as no file: %j', async (text) => {
    const [none, empty] = await Promise.all([load(undefined), load(text)])
    for (const { path } of CORE_SECTIONS) expect(empty.hash('core', path)).toBe(none.hash('core', path))
  })

  test('uses the defaults of an absent section, or names its missing keys', async () => {
    const config = await load('')
    expect(config.of('observability-metrics')).toEqual({ state: 'defaults', value: { metrics_loopback_only: false } })
    expect(config.of('channel-mailpush')).toEqual({
      state: 'unconfigured',
      why: '[channels_config.mailpush] is not configured; it needs `topic`',
    })
    expect(config.of('channel-roomchat')).toMatchObject({ why: expect.stringContaining('needs `base_url`, `app_token`') })
  })

  test.each(TARGETS)('accepts %s as an approval target', async (target) => {
    expect((await load(`[approvals]\nchannels = ["${target}"]\n`)).core(approvalsSection).channels).toEqual([target])
  })

  test('gives a feature without a section an empty configuration', async () => {
    expect((await load('')).of('tool-files')).toEqual({ state: 'defaults', value: {} })
  })

  test('treats a header alone as a configured section', async () => {
    expect((await load(ROOMCHAT)).of('channel-roomchat')).toMatchObject({ state: 'configured', value: { bot_name: '' } })
    expect((await load('[aliases]\n')).of('x-aliases')).toEqual({ state: 'configured', value: {} })
    await expect(load('[channels_config.mailpush]\n')).rejects.toEqual(problem('`channels_config.mailpush.topic` is missing'))
  })

  test('accepts an incomplete section that is turned off, but no wrong values', async () => {
    const roomchat = async (text: string) => (await load(`[channels_config.roomchat]\nenabled = ${text}`)).of('channel-roomchat')
    expect(await roomchat('false\nbot_name = "b"\n')).toEqual({ state: 'unconfigured', why: '`enabled` is false' })
    await expect(roomchat('true\n')).rejects.toEqual(problem('`channels_config.roomchat.base_url` is missing'))
    await expect(roomchat('false\nbase_url = "x"\n')).rejects.toEqual(problem('`channels_config.roomchat.base_url` must be'))
    await expect(roomchat('false\nwebhook_secret = "enc:lost"\n')).rejects.toEqual(problem('cannot be decrypted'))
    expect((await load(`${ROOMCHAT}enabled = false\n`)).of('channel-roomchat')).toMatchObject({
      state: 'configured',
      value: { enabled: false },
    })
  })

  test('freezes values at every depth', async () => {
    const config = await load(`${ROOMCHAT}[channels_config.roomchat.accounts.main]\ntoken = "t"\n`)
    const state = config.of('channel-roomchat') as { value: { accounts: { main: object } } }
    expect(() => Object.assign(state.value.accounts.main, { nick: 'x' })).toThrow(TypeError)
    expect(() => config.core(gatewaySection).allowed_hosts.push('x')).toThrow(TypeError)
  })

  test('accepts any name where the schema does', async () => {
    expect((await load('[aliases]\na = "b"\n"c.d" = "e"\n')).of('x-aliases')).toMatchObject({ value: { a: 'b', 'c.d': 'e' } })
  })
})

describe('a section that refines its values', () => {
  test('gives the feature the refined value', async () => {
    expect((await load(`${ROOMCHAT}bot_name = "BOT"\n`)).of('channel-roomchat')).toMatchObject({ value: { bot_name: 'bot' } })
  })

  test('reports problems at the value, unless the section is turned off', async () => {
    const problems = [
      { line: 4, column: 12, key: 'channels_config.roomchat.bot_name', message: expect.stringContaining('no room has a bot') },
    ]
    await expect(load(`${ROOMCHAT}bot_name = "nobody"\n`)).rejects.toMatchObject({ code: 'config_invalid', fields: { problems } })
    await load(`${ROOMCHAT}bot_name = "nobody"\nenabled = false\n`)
  })
})

describe('a section with several owners', () => {
  test('gives each owner its own keys, and only these configure it', async () => {
    const config = await load('[observability]\nbackend = "otlp"\n')
    expect(config.core(observabilitySection)).toEqual({ backend: 'otel', backends: [] })
    expect(config.of('observability-metrics')).toEqual({ state: 'defaults', value: { metrics_loopback_only: false } })
    const other = await load('[observability]\nmetrics_loopback_only = true\n')
    expect(other.core(observabilitySection)).toEqual({ backend: 'none', backends: [] })
    expect(other.of('observability-metrics')).toEqual({ state: 'configured', value: { metrics_loopback_only: true } })
  })

  test('changes only the hash of the owner whose key changed', async () => {
    const [a, b] = await Promise.all([load('[observability]\nmetrics_loopback_only = true\n'), load('')])
    expect(a.hash('observability-metrics', 'observability')).not.toBe(b.hash('observability-metrics', 'observability'))
    expect(a.hash('core', 'observability')).toBe(b.hash('core', 'observability'))
  })

  test('reports a mistake once for owners of the same schema', async () => {
    const shared = { path: 'channels_config.pair', schema: v.object({ n: v.number() }) }
    const sections = ['x-one', 'x-two'].map((owner) => ({ owner, section: shared })) as unknown as OwnedSection[]
    await expect(load('[channels_config.pair]\nn = "x"\n', { sections })).rejects.toThrow(/got a string$|got "x"$/)
    const config = await load('[channels_config.pair]\nn = 1\n', { sections })
    expect([config.of('x-one'), config.of('x-two')]).toEqual(Array(2).fill({ state: 'configured', value: { n: 1 } }))
  })
})

describe('environment', () => {
  test('lets a winning variable override the file, whose value is not read', async () => {
    expect(await port('[gateway]\nport = 1\n', { SVC_GATEWAY_PORT: '2' })).toBe(2)
    expect(await port('[gateway]\nport = "wrong"\n', { SVC_GATEWAY_PORT: '2' })).toBe(2)
    expect(await port('', { SVC_GATEWAY_PORT: ' 3 ' })).toBe(3)
  })

  test('treats an empty variable as not set', async () => {
    expect(await port('[gateway]\nport = 1\n', { SVC_GATEWAY_PORT: '' })).toBe(1)
  })

  test.each(['', ' ', '\n', '\u00a0\t'])('a blank secret (%j) counts as not set, in the file and in the environment', async (blank) => {
    const secretOf = async (text: string, env: Record<string, string>, owner: 'channel-roomchat' | 'channel-mailpush') => {
      const state = (await load(text, { env })).of(owner) as { value: { webhook_secret?: Secret } }
      return state.value.webhook_secret?.reveal()
    }
    const inFile = (secret: string) => `webhook_secret = ${JSON.stringify(secret)}\n`
    const overrides = (text: string, value: string) => secretOf(ROOMCHAT + text, { SVC_ROOMCHAT_WEBHOOK_SECRET: value }, 'channel-roomchat')
    expect(await overrides(inFile('good'), blank)).toBe('good')
    expect(await overrides(inFile(blank), 'real')).toBe('real')
    expect(await overrides(inFile(blank), blank)).toBeUndefined()
    const fills = (text: string, value: string) =>
      secretOf(`[channels_config.mailpush]\ntopic = "t"\n${text}`, { MAILPUSH_WEBHOOK_SECRET: value }, 'channel-mailpush')
    expect(await fills(inFile(blank), 'real')).toBe('real')
    expect(await fills(inFile(blank), blank)).toBeUndefined()
    const { warnings } = await load(`${ROOMCHAT}${inFile(blank)}`)
    expect(warnings).toContain('`channels_config.roomchat.webhook_secret` is blank, so it counts as not set')
    await expect(load(ROOMCHAT.replace('plain-token', blank.replace('\n', ' ')))).rejects.toEqual(
      problem('`channels_config.roomchat.app_token` is missing'),
    )
  })

  test('lets other variables only supply missing values', async () => {
    const env = { MAILPUSH_LABELS: 'A, B,,C', MAILPUSH_RENEW_OLD: '12' }
    const mailpush = async (text: string) =>
      (await load(`[channels_config.mailpush]\ntopic = "t"\n${text}`, { env })).of('channel-mailpush')
    expect(await mailpush('')).toMatchObject({ value: { label_filter: ['A', 'B', 'C'], renew_hours: 12 } })
    expect(await mailpush('label_filter = []\nrenew_hours = 1.5\n')).toMatchObject({ value: { label_filter: [], renew_hours: 1.5 } })
  })

  test('uses the first variable that is set', async () => {
    const config = await load('[channels_config.mailpush]\ntopic = "t"\n', { env: { MAILPUSH_RENEW: '1', MAILPUSH_RENEW_OLD: '2' } })
    expect(config.of('channel-mailpush')).toMatchObject({ value: { renew_hours: 1 } })
  })

  test.each([
    ['true', true],
    ['1', true],
    ['FALSE', false],
    ['0', false],
  ])('reads a flag from %j', async (text, flag) => {
    expect((await load('', { env: { SVC_REQUIRE_PAIRING: text } })).core(gatewaySection).require_pairing).toBe(flag)
  })

  test('treats a section as configured by a variable', async () => {
    const config = await load('[channels_config.mailpush]\ntopic = "t"\n', { env: { MAILPUSH_WEBHOOK_SECRET: 's3cret' } })
    const state = config.of('channel-mailpush') as { value: { webhook_secret: Secret } }
    expect(state.value.webhook_secret.reveal()).toBe('s3cret')
    expect(config.warnings).toEqual([])
  })

  test('does not configure a feature by variables that supply only a part', async () => {
    for (const env of [{ MAILPUSH_WEBHOOK_SECRET: 's3cret' }, { MAILPUSH_RENEW: 'often' }, { MAILPUSH_LABELS: 'MUCH TOO LONG' }]) {
      expect((await load('', { env })).of('channel-mailpush')).toMatchObject({ state: 'unconfigured' })
    }
  })
})

describe('secrets', () => {
  const tokens = (config: Awaited<ReturnType<typeof load>>) => {
    const { value } = config.of('channel-roomchat') as unknown as {
      value: { app_token: Secret; accounts: Record<string, { token: Secret }> }
    }
    return [value.app_token.reveal(), ...Object.values(value.accounts).map(({ token }) => token.reveal())]
  }

  test('decrypts a value for its own path only', async () => {
    const text = `[channels_config.roomchat]
base_url = "https://chat.example"
app_token = "${encrypt('one', 'channels_config.roomchat.app_token')}"
[channels_config.roomchat.accounts."a b"]
token = '${encrypt('two', 'channels_config.roomchat.accounts."a b".token')}'
[[provider.fallback]]
kind = "x"
[[provider.fallback]]
kind = "y"
api_key = "${encrypt('three', 'provider.fallback.api_key')}"
`
    const config = await load(text)
    expect(tokens(config)).toEqual(['one', 'two'])
    expect(config.warnings).toEqual([])
  })

  test('accepts plain text with a warning that does not show it', async () => {
    const config = await load(`${ROOMCHAT}[[provider.fallback]]\nkind = "x"\napi_key = "plain-key"\n`)
    expect(tokens(config)).toEqual(['plain-token'])
    expect(config.warnings).toEqual([
      '`provider.fallback[0].api_key` is in plain text in the file; `sluice config seal` encrypts it',
      '`channels_config.roomchat.app_token` is in plain text in the file; `sluice config seal` encrypts it',
    ])
  })

  test('does not decrypt a value that the environment overrides', async () => {
    const config = await load('[gateway]\nwebhook_secret = "enc:lost"\n', { env: { SVC_GATEWAY_WEBHOOK_SECRET: 'fresh' } })
    expect(config.core(gatewaySection).webhook_secret?.reveal()).toBe('fresh')
  })

  test('reports why a value cannot be decrypted, and the remedy', async () => {
    const decrypt = () => {
      throw new AppError('config_invalid', 'gateway.webhook_secret was encrypted with another key.')
    }
    await expect(load('[gateway]\nwebhook_secret = "enc:x"\n', { decrypt })).rejects.toEqual(
      problem('2:18: gateway.webhook_secret was encrypted with another key; `sluice config set gateway.webhook_secret` sets it again'),
    )
  })

  test('changes the hash with a secret, which the hash does not contain', async () => {
    const hash = async (secret: string) => (await load(`[gateway]\nwebhook_secret = "${secret}"\n`)).hash('core', 'gateway')
    expect(await hash('one')).toBe(await hash('one'))
    expect(await hash('one')).not.toBe(await hash('two'))
    expect(await hash('one')).toMatch(/^[0-9a-f]{64}$/)
  })

  test('keeps the hash when a secret becomes encrypted', async () => {
    const sealed = await load(`[gateway]\nwebhook_secret = "${encrypt('one', 'gateway.webhook_secret')}"\n`)
    expect(sealed.hash('core', 'gateway')).toBe((await load('[gateway]\nwebhook_secret = "one"\n')).hash('core', 'gateway'))
  })

  test('shows no secret value in problems and warnings', async () => {
    const value = fc
      .oneof(fc.string(), fc.integer(), fc.boolean(), fc.array(fc.string(), { maxLength: 2 }))
      .map((raw) => JSON.stringify(raw))
    const mark = 'hunter2-the-secret'
    const schema = v.object({
      key: secretText(),
      list: v.optional(v.array(secretText())),
      in: v.optional(v.record(v.string(), secretText())),
    })
    const sections = [{ owner: 'x-s', section: { path: 's', schema } }] as unknown as OwnedSection[]
    const decrypt = (): string => {
      throw new Error(mark)
    }
    await fc.assert(
      fc.asyncProperty(fc.constantFrom('key', 'list', 'in', 'kye', 'in.x', 'list.y'), value, fc.boolean(), async (name, raw, sealed) => {
        const secret = JSON.stringify(`${sealed ? 'enc:' : ''}${mark}`)
        const files = [`[s]\n${name} = ${secret}\n`, `[s]\n${name} = ${raw}\nin.a = ${secret}\n`, `[s]\nlist = [${secret}, ${raw}]\n`]
        for (const text of files) {
          const outcome = await load(text, { sections, decrypt }).catch((error: AppError) => ({
            warnings: [JSON.stringify(error.fields), error.message],
          }))
          expect(outcome.warnings.join('\n')).not.toContain(mark)
        }
      }),
    )
  })
})

describe('hash', () => {
  const hash = async (text: string, env: Record<string, string> = {}) => (await load(text, { env })).hash('core', 'gateway')

  test('is equal for equal values of any notation and source', async () => {
    const plain = await hash('[gateway]\nport = 1\nhost = "a"\n')
    expect(await hash('# c\n[gateway]\nhost = "a"\nport = 1 # d\n')).toBe(plain)
    expect(await hash('gateway = { port = 1, host = "a" }\n')).toBe(plain)
    expect(await hash('[gateway]\nhost = "a"\n', { SVC_GATEWAY_PORT: '1' })).toBe(plain)
    expect(await hash('[gateway]\nport = 42617\n')).toBe(await hash(''))
    expect(await hash('[gateway]\nport = 2\nhost = "a"\n')).not.toBe(plain)
  })

  test('changes when a section becomes configured', async () => {
    const of = async (text: string) => (await load(text)).hash('channel-roomchat', 'channels_config.roomchat')
    expect(await of('')).not.toBe(await of(ROOMCHAT))
  })

  test('throws for a section that was not loaded', async () => {
    const config = await load('')
    expect(() => config.hash('core', 'nope')).toThrow('loaded without section nope')
  })
})

describe('left out', () => {
  test('reports a section of a left-out feature with its build instruction', async () => {
    const { leftOut } = await load('[channels_config.telegram]\nanything = { at = "all" }\n[browser]\nenabled = true\n')
    expect(leftOut).toEqual([
      {
        section: 'channels_config.telegram',
        feature: 'channel-telegram',
        build: expect.stringContaining('npm run build -- full --features channel-telegram'),
      },
      { section: 'browser', feature: 'tool-browser', build: expect.stringContaining('npm run build -- full --features tool-browser') },
    ])
  })

  test('reports a single key of such a feature and uses the other keys', async () => {
    const config = await load('[observability]\nbackend = "log"\notel_endpoint = "http://x"\notel_service_name = "y"\n')
    expect(config.leftOut).toEqual([{ section: 'observability', feature: 'observability-otel', build: expect.any(String) }])
    expect(config.core(observabilitySection)).toEqual({ backend: 'log', backends: [] })
  })

  test('reports the further sections of a left-out feature', async () => {
    const { leftOut } = await load('[channels_config.workchat_cn]\napp_id = "x"\n[transcription]\nx = 1\n')
    expect(leftOut.map(({ feature }) => feature)).toEqual(['channel-workchat', 'transcription'])
  })

  test('names both features for a key in the section of another left-out feature', async () => {
    const { leftOut } = await load('[channels_config.chatapp]\naccess_token = "x"\nsession_path = "y"\n')
    expect(leftOut.map(({ feature }) => feature)).toEqual(['channel-chatapp', 'channel-chatapp-web'])
  })
})

describe('start', () => {
  test('loads any text or throws nothing but problems', async () => {
    const names = fc.constantFrom(
      'gateway',
      'provider',
      'fallback',
      'port',
      'headers',
      'api_key',
      'x',
      '__proto__',
      'constructor',
      'channels_config',
      'roomchat',
    )
    const values = fc.constantFrom('1', '"x"', 'true', '[]', '{}', '{ x = 1 }', '[{ kind = 1 }]', '1979-05-27', 'nan', '[[1]]')
    const line = fc.oneof(
      fc.tuple(fc.array(names, { minLength: 1, maxLength: 3 }), values).map(([path, value]) => `${path.join('.')} = ${value}`),
      fc.array(names, { minLength: 1, maxLength: 3 }).map((path) => `[${path.join('.')}]`),
      fc.array(names, { minLength: 1, maxLength: 3 }).map((path) => `[[${path.join('.')}]]`),
    )
    await fc.assert(
      fc.asyncProperty(fc.array(line, { maxLength: 6 }), async (lines) => {
        const thrown = await load(lines.join('\n')).then(
          () => undefined,
          (error: unknown) => error,
        )
        if (thrown !== undefined && !(thrown instanceof AppError && thrown.code === 'config_invalid')) throw thrown
      }),
      { numRuns: 300 },
    )
  })

  test('loads no parser without a file, and no converter for a valid file', async () => {
    const script = `
      import { registerHooks } from 'node:module'
      const loaded = new Set()
      registerHooks({ load(url, context, next) { loaded.add(/node_modules\\/(?:\\.pnpm\\/[^/]+\\/node_modules\\/)?((?:@[^/]+\\/)?[^/]+)/.exec(url)?.[1]); return next(url, context) } })
      const { loadConfig } = await import(${JSON.stringify(import.meta.resolve('./load-config.ts'))})
      const { CORE_SECTIONS } = await import(${JSON.stringify(import.meta.resolve('../sections/core-sections.ts'))})
      const sections = CORE_SECTIONS.map((section) => ({ owner: 'core', section }))
      const load = (text) => loadConfig({ file: 'config.toml', text, sections, env: {}, decrypt: (value) => value })
      await load(undefined)
      const none = [...loaded]
      await load('[gateway]\\nport = 1\\n')
      console.log(JSON.stringify({ none, good: [...loaded] }))`
    const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script])
    const { none, good } = JSON.parse(stdout) as { none: string[]; good: string[] }
    const heavy = (names: string[]) => names.filter((name) => /toml|to-json-schema|eslint/.test(name))
    expect(heavy(none)).toEqual([])
    expect(heavy(good)).toEqual(['toml-eslint-parser', 'eslint-visitor-keys'])
  })
})
