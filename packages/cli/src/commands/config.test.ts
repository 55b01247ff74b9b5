/** `sluice config`, on files in a scratch directory. */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { scratch } from '@sluice/qa/daemons/bundle'
import { piped, sluiceWith } from '@sluice/qa/daemons/run-command'
import { AppError, defineFeature, secretText } from '@sluice/sdk'
import * as v from 'valibot'
import { describe, expect, test } from 'vitest'

const OFFLINE = defineFeature({
  id: 'provider-offline',
  build: () => ({ providers: [{ kinds: ['offline'], load: async () => ({}) as never }] }),
})
/** Requires `api_key`, as the real provider does at the vendor's address. */
const OPENAI = defineFeature({
  id: 'provider-openai',
  build: () => ({
    providers: [
      {
        kinds: ['openai'],
        check({ api_key }) {
          if (!api_key) throw new AppError('config_invalid', '[provider] api_key is missing')
        },
        load: async () => ({}) as never,
      },
    ],
  }),
})
const CHAT = defineFeature({
  id: 'x-chat',
  section: { path: 'chat', schema: v.object({ token: secretText(), number: v.string() }) },
  build: () => ({}),
})
const sluice = sluiceWith([OFFLINE])
const sluiceOfChat = sluiceWith([OFFLINE, CHAT])

describe('sluice config', () => {
  test('check fails with exit code 78 and the place of a mistake', async () => {
    const { dir, dispose } = scratch('[gateway]\nport = "many"\n')
    try {
      const { code, err } = await sluice('config', 'check', '--data-dir', dir)
      expect(code).toBe(78)
      expect(err).toMatch(/config\.toml:2:\d+: /)
    } finally {
      dispose()
    }
  })

  test('check refuses a missing feature and names the build command', async () => {
    const { dir, dispose } = scratch('[plugins]\nenabled = true\n')
    try {
      const { code, err } = await sluice('config', 'check', '--data-dir', dir)
      expect(code).toBe(78)
      expect(err).toContain('npm run build -- full --features plugins-wasm')
    } finally {
      dispose()
    }
  })

  test.each([
    ['an unknown provider', '[provider]\nkind = "opnai"\n', 'opnai'],
    ['a backend this build leaves out', '[observability]\nbackend = "otel"\n', 'observability-otel'],
  ])('check refuses %s, as the daemon does', async (_what, config, piece) => {
    const { dir, dispose } = scratch(config)
    try {
      const { code, err } = await sluice('config', 'check', '--data-dir', dir)
      expect(code).toBe(78)
      expect(err).toContain(piece)
    } finally {
      dispose()
    }
  })

  test('set keeps comments and encrypts a secret; get does not show it', async () => {
    const { dir, dispose } = scratch('# mine\n[gateway] # here\nport = 4000 # why\n')
    try {
      expect(await sluice('config', 'set', 'gateway.port', '4001', '--data-dir', dir)).toMatchObject({ code: 0 })
      expect(
        await sluice('config', 'set', 'provider.kind', 'offline', 'provider.api_key', 'sk-very-secret', '--data-dir', dir),
      ).toMatchObject({ code: 0 })
      expect(await sluice('config', 'get', 'gateway.port', '--data-dir', dir)).toEqual({ code: 0, out: '4001\n', err: '' })
      expect(await sluice('config', 'get', 'provider.api_key', '--data-dir', dir)).toEqual({ code: 0, out: '[secret]\n', err: '' })
      const text = readFileSync(`${dir}/config.toml`, 'utf8')
      expect(text).toContain('# mine\n[gateway] # here\nport = 4001 # why\n')
      expect(text).not.toContain('sk-very-secret')
      expect(text).toMatch(/api_key = "enc:/)
    } finally {
      dispose()
    }
  })

  test('get accepts quoted names and list indexes in a key', async () => {
    const { dir, dispose } = scratch('[cost.prices."small-4.1"]\ninput = 1\noutput = 2\n\n[[provider.fallback]]\nkind = "offline"\n')
    try {
      const get = async (key: string) => (await sluice('config', 'get', key, '--data-dir', dir)).out
      expect(await get('cost.prices."small-4.1".output')).toBe('2\n')
      expect(await get('provider.fallback[0].kind')).toBe('offline\n')
      expect(await get('provider.fallback[1].kind')).toBe('')
    } finally {
      dispose()
    }
  })

  test('get --source shows the source of each value', async () => {
    const { dir, dispose } = scratch('[gateway]\nport = 4000\nhost = "127.0.0.2"\n')
    const env = { SVC_GATEWAY_PORT: '4001' }
    try {
      const get = (...args: string[]) => sluiceWith([OFFLINE], piped(''), env)('config', 'get', ...args, '--source', '--data-dir', dir)
      const rows = JSON.parse((await get('gateway', '--json')).out)
      expect(rows).toContainEqual({
        key: 'gateway.port',
        value: 4001,
        source: 'environment',
        from: 'environment variable SVC_GATEWAY_PORT',
      })
      expect(rows).toContainEqual({ key: 'gateway.host', value: '127.0.0.2', source: 'file', from: `${dir}/config.toml` })
      expect(rows).toContainEqual({ key: 'gateway.require_pairing', value: true, source: 'default' })
      expect((await get('gateway.port')).out).toMatch(/gateway\.port +4001 +environment variable SVC_GATEWAY_PORT/)
    } finally {
      dispose()
    }
  })

  test('check warns about an unused variable and an unknown tool', async () => {
    const { dir, dispose } = scratch('[security.policy]\nauto_approve = ["gpio_wirte", "gpio_write", "*"]\n')
    try {
      const check = sluiceWith([OFFLINE], piped(''), { SVC_GATWAY_PORT: '1', SVC_DATA_DIR: dir })
      const { code, err } = await check('config', 'check', '--data-dir', dir)
      expect(code).toBe(0)
      expect(err).toContain('SVC_GATWAY_PORT is set, but no key of this build reads it; did you mean SVC_GATEWAY_PORT?')
      expect(err).toContain('`security.policy.auto_approve` names the tool "gpio_wirte", which does not exist; did you mean "gpio_write"?')
      expect(err).not.toContain('"gpio_write",')
    } finally {
      dispose()
    }
  })

  test('check refuses the file of a feature that this build leaves out', async () => {
    const { dir, dispose } = scratch('')
    try {
      writeFileSync(join(dir, 'robot.toml'), '[safety]\n')
      const { code, err } = await sluice('config', 'check', '--data-dir', dir)
      expect({ code, err }).toEqual({
        code: 78,
        err: expect.stringContaining('robot.toml is for hardware-safety, which this build leaves out'),
      })
    } finally {
      dispose()
    }
  })

  test('check refuses a workspace that is a file', async () => {
    const { dir, dispose } = scratch('[agent]\nworkspace = "config.toml"\n')
    try {
      const { code, err } = await sluice('config', 'check', '--data-dir', dir)
      expect(code).toBe(78)
      expect(err).toContain(`config.toml:2:13: \`agent.workspace\` must be a folder, but ${dir}/config.toml is a file`)
    } finally {
      dispose()
    }
  })

  test('set saves several keys together, or none of them', async () => {
    const { dir, dispose } = scratch()
    try {
      const set = (...args: string[]) => sluiceOfChat('config', 'set', ...args, '--data-dir', dir)
      expect(await set('chat.token', 'hush')).toMatchObject({ code: 78, err: expect.stringContaining('`chat.number` is missing') })
      expect(await set('chat.token', 'hush', 'chat.number')).toMatchObject({
        code: 2,
        err: expect.stringContaining("'chat.number' is missing"),
      })
      expect(await set('chat.token', 'hush', 'chat.number', '1', 'gateway.port', 'x')).toMatchObject({ code: 2 })
      expect(readFileSync(`${dir}/config.toml`, 'utf8')).toBe('')
      expect(await set('chat.token', 'hush', 'chat.number', '1')).toEqual({
        code: 0,
        out: `chat.token set and encrypted in ${dir}/config.toml\nchat.number set in ${dir}/config.toml\n`,
        err: '',
      })
      expect(readFileSync(`${dir}/config.toml`, 'utf8')).toMatch(/^\[chat\]\ntoken = "enc:.+"\nnumber = "1"\n$/)
      expect(await set('chat', 'gateway', '--unset')).toMatchObject({ code: 0 })
      expect(readFileSync(`${dir}/config.toml`, 'utf8').trim()).toBe('')
    } finally {
      dispose()
    }
  })

  test('set without a value encrypts a secret that is in plain text', async () => {
    const { dir, dispose } = scratch('[chat] # mine\ntoken = "hush" # its token\nnumber = "1"\n')
    try {
      expect((await sluiceOfChat('doctor', '--data-dir', dir)).out).toContain('`sluice config seal` encrypts it')
      expect(await sluiceOfChat('config', 'set', 'chat.token', '--data-dir', dir, '--json')).toMatchObject({
        code: 0,
        out: expect.stringContaining('"done": "encrypted"'),
      })
      expect(readFileSync(`${dir}/config.toml`, 'utf8')).toMatch(/^\[chat\] # mine\ntoken = "enc:.+" # its token\nnumber = "1"\n$/)
      expect((await sluiceOfChat('doctor', '--data-dir', dir)).out).not.toContain('in plain text')
    } finally {
      dispose()
    }
  })

  test('seal encrypts every plain-text secret and keeps the rest of the file', async () => {
    const { dir, dispose } = scratch('[chat] # mine\ntoken = "hush" # its token\nnumber = "1"\n\n[gateway]\nwebhook_secret = "shh"\n')
    try {
      expect(JSON.parse((await sluiceOfChat('config', 'seal', '--json', '--data-dir', dir)).out)).toEqual({
        file: `${dir}/config.toml`,
        sealed: ['gateway.webhook_secret', 'chat.token'],
      })
      expect(readFileSync(`${dir}/config.toml`, 'utf8')).toMatch(
        /^\[chat\] # mine\ntoken = "enc:.+" # its token\nnumber = "1"\n\n\[gateway\]\nwebhook_secret_sha256 = "[0-9a-f]{64}"\n$/,
      )
      expect((await sluiceOfChat('config', 'seal', '--data-dir', dir)).out).toContain('holds no secret in plain text')
      expect((await sluiceOfChat('config', 'check', '--data-dir', dir)).code).toBe(0)
    } finally {
      dispose()
    }
  })

  test('set without a value reads it from standard input', async () => {
    const { dir, dispose } = scratch('[provider]\nkind = "offline"\n')
    const set = (input: string, key: string) => sluiceWith([OFFLINE], piped(input))('config', 'set', key, '--data-dir', dir)
    try {
      expect(await set('sk-piped\n', 'provider.api_key')).toMatchObject({ code: 0, out: expect.stringContaining('set and encrypted') })
      expect(readFileSync(`${dir}/config.toml`, 'utf8')).toMatch(/api_key = "enc:/)
      for (const nothing of ['', '\n']) {
        expect(await set(nothing, 'provider.api_key')).toMatchObject({
          code: 2,
          err: expect.stringContaining('is missing; to remove the key'),
        })
      }
      expect(await set(' \n', 'provider.api_key')).toMatchObject({ code: 2, err: expect.stringContaining('not blank') })
      expect(await set('x'.repeat(300_000), 'provider.api_key')).toMatchObject({ code: 2, err: expect.stringContaining('262144 bytes') })
      expect(await set('4001\n', 'gateway.port')).toMatchObject({ code: 0 })
    } finally {
      dispose()
    }
  })

  test('set asks only for a secret at a terminal, without echo', async () => {
    const { dir, dispose } = scratch('[provider]\nkind = "offline"\n')
    const type = (keys: string, key: string) =>
      sluiceWith([OFFLINE], Object.assign(piped(keys), { isTTY: true }))('config', 'set', key, '--data-dir', dir)
    try {
      const { code, out, err } = await type('sk-typed\r', 'provider.api_key')
      expect({ code, err }).toEqual({ code: 0, err: 'the value of provider.api_key, which is not shown:\n' })
      expect(out).not.toContain('sk-typed')
      for (const given of ['\r', '', '\u0003', '\u0004']) expect((await type(given, 'provider.api_key')).code).toBe(2)
      expect(await type('4001\r', 'gateway.port')).toMatchObject({ code: 2, err: expect.stringContaining('is missing') })
    } finally {
      dispose()
    }
  })

  test('set warns about an incomplete provider', async () => {
    const { dir, dispose } = scratch()
    const set = (input: string, ...args: string[]) =>
      sluiceWith([OFFLINE, OPENAI], piped(input))('config', 'set', ...args, '--data-dir', dir)
    try {
      const first = await set('', 'provider.kind', 'openai')
      expect(first).toMatchObject({
        code: 0,
        err: expect.stringContaining('would not start with this file yet: [provider] api_key is missing'),
      })
      expect(readdirSync(dir)).not.toContain('sluice.db')
      const second = await set('sk-piped\n', 'provider.model', 'small', 'provider.api_key')
      expect(second).toMatchObject({ code: 0, err: '' })
      expect(readFileSync(`${dir}/config.toml`, 'utf8')).toMatch(/model = "small"\napi_key = "enc:/)
    } finally {
      dispose()
    }
  })

  test('set refuses an invalid value and saves nothing', async () => {
    const { dir, dispose } = scratch('[gateway]\nport = 4000\n')
    try {
      expect((await sluice('config', 'set', 'gateway.port', '70000', '--data-dir', dir)).code).toBe(2)
      expect((await sluice('config', 'set', 'gateway.prot', '1', '--data-dir', dir)).err).toContain('port')
      expect((await sluice('config', 'get', 'gateway.port', '--data-dir', dir)).out).toBe('4000\n')
    } finally {
      dispose()
    }
  })

  test('init writes a valid file and never overwrites one', async () => {
    const { dir, dispose } = scratch()
    try {
      const file = `${dir}/fresh.toml`
      expect((await sluice('config', 'init', '--config', file, '--data-dir', dir)).code).toBe(0)
      expect((await sluice('config', 'check', '--config', file, '--data-dir', dir)).code).toBe(0)
      expect((await sluice('config', 'init', '--config', file, '--data-dir', dir)).code).toBe(1)
    } finally {
      dispose()
    }
  })
})
