/** Files with mistakes and the exact problems that are reported. */
import { AppError } from '@sluice/sdk'
import { expect, test } from 'vitest'
import { load } from '../testing/sample-sections.ts'
import type { TomlProblem } from '../toml/problem.ts'

async function problemsOf(text: string, env: Record<string, string> = {}): Promise<string[]> {
  const thrown = await load(text, { env }).catch((error: unknown) => error)
  if (!(thrown instanceof AppError)) throw new Error(`${JSON.stringify(text)} loads, or fails otherwise: ${String(thrown)}`)
  expect(thrown.code).toBe('config_invalid')
  const problems = thrown.fields.problems as readonly TomlProblem[]
  return problems.map(({ line = '-', column = '-', key, message }) => `${line}:${column} ${key} | ${message}`)
}

/** The file, the problems as `line:column key | sentence`, and the environment. */
const CASES: readonly (readonly [text: string, problems: readonly string[], env?: Record<string, string>])[] = [
  ['[gateway]\nport = # later\nhost = "x"\n', ['2:15  | this is not valid TOML: a value is missing after the equals sign']],
  ['[gateway]\nport 8080\n', ['2:5  | this is not valid TOML: a key must be followed by an equals sign and a value']],
  ['[provider]\nheaders = { a = "1"\nmodel = "x"\n', ['3:1  | this is not valid TOML: a table in braces must be on one line']],
  ['[gateway]\nhost = "\\uD800"\n', ['2:14  | this is not valid TOML: Invalid code point D800']],
  ['[gateway]\nallowed_hosts = ["a" "b"]\n', ['2:22  | this is not valid TOML: a comma is missing here']],
  [
    '[gateway]\nwebhook_secret = hunter2\n',
    ['2:18  | this is not valid TOML: a value must be a string in quotes, a number, true or false, an array or a table'],
  ],
  ['[gateway]\nwebhook_secret = "hunter2\n', ['2:26  | this is not valid TOML: this text does not end: its closing quote is missing']],
  [
    '[channels_config.roomchat]\nbase_url = "https://x.example"\napp_token = "t"\naccounts = { a = { token = "enc:channels_config.roomchat.accounts.b.token:x" } }\n',
    [
      '4:28 channels_config.roomchat.accounts.a.token | `channels_config.roomchat.accounts.a.token` cannot be decrypted; `sluice config set channels_config.roomchat.accounts.a.token` sets it again',
    ],
  ],
  [
    '[provider.headers]\nAuthorization = ["Bearer hunter2"]\n',
    ['2:17 provider.headers.Authorization | `provider.headers.Authorization` must be a string that is not empty; got something else'],
  ],
  [
    '[provider]\napi_key = { env = "X" }\n',
    ['2:11 provider.api_key | `provider.api_key` must be a string that is not empty; got something else'],
  ],
  ['[roomchat]\nx = 1\n', ['1:2 roomchat | [roomchat] is not a known section; did you mean [channels_config.roomchat]?']],
  [
    '[gateway]\nwebhook_rate_limit = 5\n',
    ['2:1 gateway.webhook_rate_limit | `gateway.webhook_rate_limit` is not a known key; did you mean `webhook_rate_limit_per_minute`?'],
  ],
  [
    '[gateway]\nhost = "http://localhost:8080"\n',
    ['2:8 gateway.host | `gateway.host`: must be an IP address or a host name, without scheme and port'],
  ],
  ['[gateway]\nhost = "300.1.2.3"\n', ['2:8 gateway.host | `gateway.host`: must be an IP address or a host name, without scheme and port']],
  ['[gatway]\nport = 1\n', ['1:2 gatway | [gatway] is not a known section; did you mean [gateway]?']],
  ['[gateway]\nprot = 1\n', ['2:1 gateway.prot | `gateway.prot` is not a known key; did you mean `port`?']],
  ['port = 1\n', ['1:1 port | `port` is outside of every section; did you mean `gateway.port`?']],
  ['# x\n\nprto = 1\n', ['3:1 prto | `prto` is outside of every section']],
  ['gateway = 5\n', ['1:11 gateway | `gateway` is a section and is written as [gateway], but the file has a number']],
  ['gateway = "x"\n', ['1:11 gateway | `gateway` is a section and is written as [gateway], but the file has a string']],
  ['[[gateway]]\nport = 1\n', ['1:3 gateway | `gateway` is a section and is written as [gateway], not as [[gateway]]']],
  ['security = 1\n', ['1:12 security | `security` is a section and is written as [security], but the file has a number']],
  ['[security]\nlevel = "full"\n', ['2:1 security.level | `security.level` is not a known key; [security.policy] has a key of that name']],
  [
    '[security.polciy]\nlevel = "full"\n',
    ['1:2 security.polciy | [security.polciy] is not a known section; did you mean [security.policy]?'],
  ],
  ['[gateway]\nport = "8080"\n', ['2:8 gateway.port | `gateway.port` must be a whole number between 0 and 65535; got "8080"']],
  ['[gateway]\nport = 70000\n', ['2:8 gateway.port | `gateway.port` must be a whole number between 0 and 65535; got 70000']],
  ['[gateway]\nport = -1\n', ['2:8 gateway.port | `gateway.port` must be a whole number between 0 and 65535; got -1']],
  ['[gateway]\nport = 1.5\n', ['2:8 gateway.port | `gateway.port` must be a whole number between 0 and 65535; got 1.5']],
  ['[gateway]\nport = true\n', ['2:8 gateway.port | `gateway.port` must be a whole number between 0 and 65535; got true']],
  ['[gateway]\nport = [1]\n', ['2:8 gateway.port | `gateway.port` must be a whole number between 0 and 65535; got an array']],
  ['[gateway]\nport = {}\n', ['2:8 gateway.port | `gateway.port` must be a whole number between 0 and 65535; got a table']],
  ['[gateway]\nport = 1979-05-27\n', ['2:8 gateway.port | `gateway.port` must be a whole number between 0 and 65535; got a date or time']],
  [
    '[gateway]\nport = 9223372036854775807\n',
    ['2:8 gateway.port | `gateway.port` must be a whole number between 0 and 65535; got 9223372036854775807'],
  ],
  ['[gateway]\nport = nan\n', ['2:8 gateway.port | `gateway.port` must be a whole number between 0 and 65535; got NaN']],
  [
    '[gateway]\nrequire_pairing = "yes"\n',
    ['2:19 gateway.require_pairing | `gateway.require_pairing` must be a boolean (true or false); got "yes"'],
  ],
  ['[gateway]\nhost = ""\n', ['2:8 gateway.host | `gateway.host` must be a string that is not empty; got ""']],
  ['[gateway]\nhost = 7\n', ['2:8 gateway.host | `gateway.host` must be a string that is not empty; got 7']],
  ['[gateway]\nallowed_hosts = "a"\n', ['2:17 gateway.allowed_hosts | `gateway.allowed_hosts` must be an array of strings; got a string']],
  ['[gateway]\nallowed_hosts = ["a", 1]\n', ['2:23 gateway.allowed_hosts[1] | `gateway.allowed_hosts[1]` must be a string; got 1']],
  [
    '[gateway]\nallowed_hosts = [\n  "a", # one\n  true,\n]\n',
    ['4:3 gateway.allowed_hosts[1] | `gateway.allowed_hosts[1]` must be a string; got true'],
  ],
  ['[log]\nlevel = "verbose"\n', ['2:9 log.level | `log.level` must be one of "debug", "info", "warn", "error"; got "verbose"']],
  ['[log]\nlevel = 3\n', ['2:9 log.level | `log.level` must be one of "debug", "info", "warn", "error"; got 3']],
  ['[agent]\ntemperature = 3\n', ['2:15 agent.temperature | `agent.temperature` must be a number between 0 and 2; got 3']],
  ['[agent]\nworkspace = ""\n', ['2:13 agent.workspace | `agent.workspace` must be a string that is not empty; got ""']],
  ['gateway.prot = 1\n', ['1:9 gateway.prot | `gateway.prot` is not a known key; did you mean `port`?']],
  ['gateway.port = "x"\n', ['1:16 gateway.port | `gateway.port` must be a whole number between 0 and 65535; got "x"']],
  [
    'gateway = { port = "x", hots = "y" }\n',
    [
      '1:20 gateway.port | `gateway.port` must be a whole number between 0 and 65535; got "x"',
      '1:25 gateway.hots | `gateway.hots` is not a known key; did you mean `host`?',
    ],
  ],
  [
    '[provider]\nkind = "openai"\nbase_url = "localhost:1234"\n',
    [
      '3:12 provider.base_url | `provider.base_url`: must be an http or https URL such as https://host.example/v1, without user name, query or fragment',
    ],
  ],
  ['[provider]\nkind = "openai"\nbase_url = "nope"\n', ['3:12 provider.base_url | `provider.base_url` must be a URL; got "nope"']],
  [
    '[provider]\nkind = "openai"\nbase_url = "http://me:hunter2@ho st"\n',
    ['3:12 provider.base_url | `provider.base_url` must be a URL; got "http://[secret]@ho st"'],
  ],
  [
    '[[provider.fallback]]\nmodel = "x"\n',
    ['1:3 provider.fallback[0].kind | `provider.fallback[0].kind` is missing; it must be a string that is not empty'],
  ],
  [
    '[[provider.fallback]]\nkind = "a"\n[[provider.fallback]]\nkind = "b"\nmodle = "x"\n',
    ['5:1 provider.fallback[1].modle | `provider.fallback[1].modle` is not a known key; did you mean `model`?'],
  ],
  [
    '[provider]\nfallback = [{ kind = "a" }, { kind = 1 }]\n',
    ['2:38 provider.fallback[1].kind | `provider.fallback[1].kind` must be a string that is not empty; got 1'],
  ],
  [
    '[provider]\nfallback = { kind = "a" }\n',
    ['2:12 provider.fallback | `provider.fallback` must be an array of tables, at most 8 entries; got a table'],
  ],
  [
    '[provider.fallback]\nkind = "a"\n',
    ['1:2 provider.fallback | `provider.fallback` must be an array of tables, at most 8 entries; got a table'],
  ],
  [
    '[provider]\nheaders = { Authorization = 5 }\n',
    ['2:29 provider.headers.Authorization | `provider.headers.Authorization` must be a string that is not empty; got something else'],
  ],
  ['[provider.headers]\n__proto__ = "x"\n', ['2:1 provider.headers.__proto__ | `provider.headers.__proto__` is not a known key']],
  [
    '[cost.prices."gpt-4.1"]\ninput = 1\n',
    ['1:2 cost.prices."gpt-4.1".output | `cost.prices."gpt-4.1".output` is missing; it must be a number of at least 0'],
  ],
  [
    '[cost.prices]\nx = { input = 1, output = -1, currency = "EUR" }\n',
    [
      '2:27 cost.prices.x.output | `cost.prices.x.output` must be a number of at least 0; got -1',
      '2:31 cost.prices.x.currency | `cost.prices.x.currency` is not a known key',
    ],
  ],
  ['[cost]\nprices = { x = 5 }\n', ['2:16 cost.prices.x | `cost.prices.x` must be a table; got a number']],
  [
    '[channels_config.roomchat]\n',
    [
      '1:2 channels_config.roomchat.base_url | `channels_config.roomchat.base_url` is missing; it must be a URL',
      '1:2 channels_config.roomchat.app_token | `channels_config.roomchat.app_token` is missing; it must be a string that is not empty',
    ],
  ],
  [
    '[channels_config.roomchat]\nbase_url = "https://x.example"\n',
    ['1:2 channels_config.roomchat.app_token | `channels_config.roomchat.app_token` is missing; it must be a string that is not empty'],
  ],
  [
    '[channels_config.roomchat]\nbase_url = "https://x.example"\napp_token = ""\n',
    ['3:13 channels_config.roomchat.app_token | `channels_config.roomchat.app_token` is missing; it must be a string that is not empty'],
  ],
  [
    '[channels_config.roomchat]\nbase_url = "https://x.example"\napp_token = 12345678\n',
    [
      '3:13 channels_config.roomchat.app_token | `channels_config.roomchat.app_token` must be a string that is not empty; got something else',
    ],
  ],
  [
    '[channels_config.roomchat]\nbase_url = "https://x.example"\napp_token = "enc:other:hunter2"\n',
    [
      '3:13 channels_config.roomchat.app_token | `channels_config.roomchat.app_token` cannot be decrypted; `sluice config set channels_config.roomchat.app_token` sets it again',
    ],
  ],
  [
    '[channels_config.roomchat]\nbase_url = "https://x.example"\napp_token = "t"\nretry = { attempts = 11 }\n',
    [
      '4:1 channels_config.roomchat.retry.after_secs | `channels_config.roomchat.retry.after_secs` is missing; it must be a number',
      '4:22 channels_config.roomchat.retry.attempts | `channels_config.roomchat.retry.attempts` must be a whole number between 1 and 10; got 11',
    ],
  ],
  [
    '[channels_config.roomchat]\nbase_url = "https://x.example"\napp_token = "t"\n[channels_config.roomchat.retry]\nafter_sec = 1\n',
    [
      '4:2 channels_config.roomchat.retry.after_secs | `channels_config.roomchat.retry.after_secs` is missing; it must be a number',
      '5:1 channels_config.roomchat.retry.after_sec | `channels_config.roomchat.retry.after_sec` is not a known key; did you mean `after_secs`?',
    ],
  ],
  [
    '[channels_config.roomchat]\nbase_url = "https://x.example"\napp_token = "t"\non_error = 5\n',
    [
      '4:12 channels_config.roomchat.on_error | `channels_config.roomchat.on_error` must be a boolean (true or false) or an array of strings; got 5',
    ],
  ],
  [
    '[channels_config.roomchat]\nbase_url = "https://x.example"\napp_token = "t"\nbot_name = "aaaaaaaaaaaaaaaaaaaaaaaaa"\n',
    [
      '4:12 channels_config.roomchat.bot_name | `channels_config.roomchat.bot_name` must be a string, at most 20 characters; got "aaaaaaaaaaaaaaaaaaaaaaaaa"',
    ],
  ],
  [
    '[channels_config.roomchat]\nbase_url = "https://x.example"\napp_token = "t"\nkinds = [{ kind = "c" }, { kind = "a", size = 9 }, { kind = "b", name = "X" }, { kind = "a", size = 1, x = 1 }]\n',
    [
      '4:19 channels_config.roomchat.kinds[0].kind | `channels_config.roomchat.kinds[0].kind` must be one of "a", "b"; got "c"',
      '4:47 channels_config.roomchat.kinds[1].size | `channels_config.roomchat.kinds[1].size` must be a whole number between 1 and 5; got 9',
      '4:73 channels_config.roomchat.kinds[2].name | `channels_config.roomchat.kinds[2].name`: a name has lower-case letters only',
      '4:104 channels_config.roomchat.kinds[3].x | `channels_config.roomchat.kinds[3].x` is not a known key',
    ],
  ],
  [
    '[channels_config.roomchat]\nbase_url = "https://x.example"\napp_token = "t"\n[channels_config.roomchat.accounts.main]\nnick = 5\n',
    [
      '4:2 channels_config.roomchat.accounts.main.token | `channels_config.roomchat.accounts.main.token` is missing; it must be a string that is not empty',
      '5:8 channels_config.roomchat.accounts.main.nick | `channels_config.roomchat.accounts.main.nick` must be a string; got a number',
    ],
  ],
  [
    '[channels_config.romchat]\nx = 1\n',
    ['1:2 channels_config.romchat | [channels_config.romchat] is not a known section; did you mean [channels_config.roomchat]?'],
  ],
  [
    '[channels_config.telegarm]\nx = 1\n',
    ['1:2 channels_config.telegarm | [channels_config.telegarm] is not a known section; did you mean [channels_config.telegram]?'],
  ],
  [
    '[channels_config]\nroomchat = 5\n',
    [
      '2:12 channels_config.roomchat | `channels_config.roomchat` is a section and is written as [channels_config.roomchat], but the file has a number',
    ],
  ],
  [
    '[observability]\nmetrics_loopback = true\n',
    ['2:1 observability.metrics_loopback | `observability.metrics_loopback` is not a known key; did you mean `metrics_loopback_only`?'],
  ],
  [
    '[observability]\notel_endpont = "x"\n',
    ['2:1 observability.otel_endpont | `observability.otel_endpont` is not a known key; did you mean `otel_endpoint`?'],
  ],
  ['[gateway]\nmodel = "x"\n', ['2:1 gateway.model | `gateway.model` is not a known key; [provider] has a key of that name']],
  ['[aliases]\na = 1\n', ['2:5 aliases.a | `aliases.a` must be a string; got a number']],
  ['__proto__ = 1\n', ['1:1 __proto__ | `__proto__` is outside of every section']],
  ['[__proto__]\nx = 1\n', ['1:2 __proto__ | [__proto__] is not a known section']],
  ['[constructor]\nx = 1\n', ['1:2 constructor | [constructor] is not a known section']],
  ['[gateway.toString]\nx = 1\n', ['1:2 gateway.toString | `gateway.toString` is not a known key']],
  ['["ga\\u0074way"]\nx=1\n', ['1:2 gatway | [gatway] is not a known section; did you mean [gateway]?']],
  ['\ufeff[gateway]\nprot = 1\n', ['2:1 gateway.prot | `gateway.prot` is not a known key; did you mean `port`?']],
  ['[gateway]\r\nport = 1\r\nprot = 2\r\n', ['3:1 gateway.prot | `gateway.prot` is not a known key; did you mean `port`?']],
  ['[gateway]\nport = 1\nport = 2\n', ['3:1  | this is set twice; the first is in line 2']],
  ['[gateway]\n[agent]\n[gateway]\n', ['3:2  | this is set twice; the first is in line 1']],
  ['[gateway]\nport = 1\n[[gateway]]\n', ['3:3  | this is set twice; the first is in line 1']],
  ['a = { b = 1, b = 2 }\n', ['1:14  | this is set twice']],
  ['[provider]\nheaders.a = "1"\nheaders = {}\n', ['3:1  | this is set twice; the first is in line 2']],
  [
    '[gateway]\nhost = localhost\n',
    ['2:8  | this is not valid TOML: a value must be a string in quotes, a number, true or false, an array or a table'],
  ],
  ['[gateway]\nhost = "x\n', ['2:10  | this is not valid TOML: this text does not end: its closing quote is missing']],
  ['[gateway\nport = 1\n', ['1:9  | this is not valid TOML: this line is not complete: a bracket, an equals sign or a value is missing']],
  ['[gateway]\nport = \n', ['2:7  | this is not valid TOML: a value is missing after the equals sign']],
  ['[gateway]\nport\n', ['2:5  | this is not valid TOML: a key must be followed by an equals sign and a value']],
  [
    '[gateway]\nport = 1 host = "x"\n',
    ['2:10  | this is not valid TOML: only a comment may follow here; the next key needs a line of its own'],
  ],
  ['[gateway]\nallowed_hosts = ["a"\n', ['2:21  | this is not valid TOML: this array does not end: its closing bracket is missing']],
  [
    '[gateway]\nhost = "C:\\path"\n',
    ['2:12  | this is not valid TOML: this escape is not known; write a backslash as two, or put the text in single quotes'],
  ],
  ['[gateway]\nport = 0080\n', ['2:8  | this is not valid TOML: Leading zeros are not allowed']],
  [
    '[gateway]\nrequire_pairing = True\n',
    ['2:19  | this is not valid TOML: a value must be a string in quotes, a number, true or false, an array or a table'],
  ],
  ['[gateway]\nport: 8080\n', ['2:5  | this is not valid TOML: this character is not allowed here']],
  ['{"gateway": {"port": 1}}\n', ['1:1  | this is not valid TOML: this is not allowed here']],
  ['x = { a = 1,\n b = 2 }\n', ['2:2  | this is not valid TOML: a table in braces must be on one line']],
  ['[]\n', ['1:2  | this is not valid TOML: a name is missing here']],
  ['a = "\u0001"\n', ['1:6  | this is not valid TOML: control characters are not allowed; write them as escapes in double quotes']],
  [
    '',
    [
      '-:- gateway.port | the environment variable SVC_GATEWAY_PORT (for `gateway.port`) must be a whole number between 0 and 65535, but it is "abc"',
    ],
    { SVC_GATEWAY_PORT: 'abc' },
  ],
  [
    '[gateway]\nport=1\n',
    [
      '-:- gateway.port | the environment variable SVC_GATEWAY_PORT (for `gateway.port`) must be a whole number between 0 and 65535, but it is "70000"',
    ],
    { SVC_GATEWAY_PORT: '70000' },
  ],
  [
    '',
    [
      '-:- gateway.require_pairing | the environment variable SVC_REQUIRE_PAIRING (for `gateway.require_pairing`) must be a boolean (true or false), but it is "maybe"',
    ],
    { SVC_REQUIRE_PAIRING: 'maybe' },
  ],
  [
    '',
    [
      '-:- log.level | the environment variable SVC_LOG_LEVEL (for `log.level`) must be one of "debug", "info", "warn", "error", but it is "loud"',
    ],
    { SVC_LOG_LEVEL: 'loud' },
  ],
  [
    '',
    ['-:- provider.base_url | the environment variable SVC_PROVIDER_BASE_URL (for `provider.base_url`) must be a URL, but it is "nope"'],
    { SVC_PROVIDER_KIND: 'openai', SVC_PROVIDER_BASE_URL: 'nope' },
  ],
  [
    '[channels_config.mailpush]\ntopic = "t"\n',
    [
      '-:- channels_config.mailpush.label_filter[1] | the environment variable MAILPUSH_LABELS (for `channels_config.mailpush.label_filter[1]`) must be a string, at most 5 characters, but it is "TOO LONG"',
    ],
    { MAILPUSH_LABELS: 'A, TOO LONG' },
  ],
  [
    '[channels_config.mailpush]\ntopic = "t"\n',
    [
      '-:- channels_config.mailpush.renew_hours | the environment variable MAILPUSH_RENEW (for `channels_config.mailpush.renew_hours`) must be a number, but it is "often"',
    ],
    { MAILPUSH_RENEW: 'often' },
  ],
  [
    '[gateway]\nport = "x"\nprot = 1\n[log]\nlevel = 1\n[nope]\n',
    [
      '2:8 gateway.port | `gateway.port` must be a whole number between 0 and 65535; got "x"',
      '3:1 gateway.prot | `gateway.prot` is not a known key; did you mean `port`?',
      '5:9 log.level | `log.level` must be one of "debug", "info", "warn", "error"; got 1',
      '6:2 nope | [nope] is not a known section',
    ],
  ],
]

const NAMED = CASES.map(([text, problems, env = {}]) => ({ name: JSON.stringify({ text, ...env }), text, problems, env }))
test.each(NAMED)('reports a mistake with place, key and expectation: $name', async ({ text, problems, env }) => {
  expect(await problemsOf(text, env)).toEqual(problems)
})

test('shows no secret in any problem of the file around it', async () => {
  const files = CASES.map(([text]) => text).filter((text) => text.includes('hunter2'))
  expect(files.length).toBeGreaterThan(4)
  for (const text of files) expect((await problemsOf(text)).join()).not.toContain('hunter2')
})

test('counts problems beyond the listed ones', async () => {
  const text = `[gateway]\n${Array.from({ length: 150 }, (_, index) => `x${index} = 1`).join('\n')}\n`
  expect(await problemsOf(text)).toHaveLength(100)
  await expect(load(text)).rejects.toThrow('config.toml:2:1: `gateway.x0` is not a known key (and 149 more)')
})
