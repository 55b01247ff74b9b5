// Generates the pages of docs/ that list features, keys, commands, routes and events, from the data that the program itself uses.
// `--check` writes nothing and fails if a page is out of date. `--feature <package>` prints the page of a feature in an npm package that is
// installed in the working directory.
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { sectionsOf } from '@sluice/config'
import { configReference } from '@sluice/config/reference'
import { chatFrameSchema, clientFrameSchema } from '@sluice/http/streams/chat-frames'
import { streamFrameSchema } from '@sluice/http/streams/frames'
import { COMMON_OPTIONS, REMOTE_OPTIONS } from '../packages/cli/src/command.ts'
import { COMMANDS } from '../packages/cli/src/command-descriptions.ts'
import { featureCommands } from '../packages/cli/src/feature-commands.ts'
import { METRICS } from '../packages/observability-metrics/src/table.ts'
import { buildHint, CATALOGUE, ERRORS, eventMembers, ROWS } from '../packages/sdk/src/index.ts'
import { always } from '../profiles/always.ts'
import { abilitiesOf, abilityCells } from './abilities.mjs'
import { decisionsPage } from './decisions.mjs'
import { cell, code, keyCells, page, table } from './markdown.mjs'
import { documentOf } from './openapi.mjs'
import { performancePage } from './performance.mjs'
import { FROM_A_CLONE, readmes } from './readmes.mjs'

const { getDescription } = await import(createRequire(resolve(import.meta.dirname, '../packages/config/package.json')).resolve('valibot'))
const ROOT = resolve(import.meta.dirname, '..')

/** Every feature of this release, including features that are in no profile. */
const optional = ROWS.filter(([id]) => !always.some((feature) => feature.id === id))
const everything = [...always, ...(await Promise.all(optional.map(async ([id]) => (await import(`@sluice/${id}`)).default)))]

/** The command for a feature that some builds leave out. */
function howToGet(id, row) {
  if (row.profile && row.flag === null) return 'every build'
  return code(row.profile ? `npm run build -- ${row.profile}` : buildHint(id))
}

function features() {
  const rows = ROWS.map(([id, row]) => [
    code(id),
    row.flag ? code(row.flag) : 'always',
    row.summary,
    [...(row.tools ?? []), ...(row.routes ?? []), ...(row.commands ?? [])].map(code).join(', '),
    [row.section, ...(row.moreSections ?? [])]
      .filter(Boolean)
      .map((section) => code(`[${section}]`))
      .join(', '),
    howToGet(id, row),
  ])
  return page(
    'Features',
    'Each feature is a package of its own, and a build contains some of them. `sluice features` lists the features of your build with their state:\n\n```sh\nsluice features\n```\n\nA feature that the build leaves out still answers, with the command that builds it in: its routes with 404 and `not_compiled`, its tools with an error result that the model can read, its commands with exit code 2.',
    table(['feature', 'flag', 'what it is', 'adds', 'section', 'how to get it'], rows),
  )
}

/** Says which of these keys exist only in builds with a flag; undefined if none does. */
function neededFlags(keys) {
  const flagged = keys.filter(({ owner }) => !always.some(({ id }) => id === owner) && CATALOGUE[owner]?.flag)
  if (flagged.length === 0) return undefined
  const builds = `in builds with ${[...new Set(flagged.map(({ owner }) => code(CATALOGUE[owner].flag)))].join(' or ')}.`
  return flagged.length === keys.length ? builds.replace('in', 'In') : `${flagged.map(({ key }) => code(key)).join(', ')}: ${builds}`
}

/** One chapter for each section of these rows. */
const sectionChapters = (rows) =>
  [...new Set(rows.map(({ section }) => section))].map((section) => {
    const keys = rows.filter((row) => row.section === section)
    return [`## \`[${section}]\``, neededFlags(keys), table(['key', 'type', 'default', 'environment', 'meaning'], keys.map(keyCells))]
      .filter(Boolean)
      .join('\n\n')
  })

function configuration() {
  return page(
    'Configuration',
    'The configuration is one TOML file, `~/.sluice/config.toml` unless `--config` or `--data-dir` name another place. A missing file means all defaults. An unknown key or section is an error with file, line, column and the nearest known key. The daemon watches the file and applies a change; an invalid file changes nothing. An environment variable overrides the file. `sluice config schema` prints a JSON Schema for editors.',
    'A secret may be in plain text. `sluice config set KEY VALUE` stores it encrypted; without a value, `sluice config set KEY` encrypts the present value, or reads a new one from the terminal or from standard input. `sluice config set KEY VALUE KEY VALUE` sets several keys together, which a new section often needs. A secret that consists of white space counts as not set, in the file and in the environment. A section with `enabled = false` may be incomplete.',
    ...sectionChapters(configReference(sectionsOf(everything))),
  )
}

/** The page of a feature in an npm package of its own, which is installed where the user stands: its row, its commands and its keys. */
async function ownFeature(name) {
  const entry = createRequire(join(process.cwd(), 'any.mjs')).resolve(name)
  const { default: feature } = await import(pathToFileURL(entry))
  const { summary, tools = [], routes = [] } = feature.row ?? { summary: feature.id }
  const commandList = featureCommands([feature]).filter(({ name: words }) => feature.row?.commands?.includes(words))
  const list = (title, names) => (names.length > 0 ? `${title}: ${names.map(code).join(', ')}.` : undefined)
  const parts = [
    `# ${name}`,
    [`${summary}.`, list('Tools', tools), list('Routes', routes)].filter(Boolean).join(' '),
    ...commandList.map(({ name: words, usage, summary }) => `${code(['sluice', words, usage].filter(Boolean).join(' '))}: ${summary}.`),
    ...sectionChapters(configReference(sectionsOf([feature]).filter(({ owner }) => owner === feature.id))),
  ]
  return `${parts.join('\n\n')}\n`
}

function commands() {
  const option = ([name, { short, value, help }]) =>
    `| ${cell(code(`--${name}${value ? ` ${value}` : ''}`))}${short ? `, ${code(`-${short}`)}` : ''} | ${cell(help)} |`
  const list = (options) => ['| option | |', '|---|---|', ...Object.entries(options).map(option)].join('\n')
  const parts = [...COMMANDS, ...featureCommands(everything)].map((command) =>
    [
      `## sluice ${command.name}`,
      `${command.summary}.`,
      command.more,
      code(['sluice', command.name, command.usage].filter(Boolean).join(' ')),
      (command.options || command.remote) && list({ ...command.options, ...(command.remote && REMOTE_OPTIONS) }),
    ]
      .filter(Boolean)
      .join('\n\n'),
  )
  return page(
    'Commands',
    'Exit codes: 0 success, 1 failure, 2 wrong usage, 78 wrong configuration. [features.md](features.md) lists the commands that a build may leave out.',
    '## Options every command takes',
    list(COMMON_OPTIONS),
    ...parts,
  )
}

/** Returns the least role that may call a route. An operator may call every route of a client. */
const roleOf = (security) => (security.some(({ bearer }) => bearer?.includes('client')) ? 'client' : 'operator')

async function http() {
  const document = await documentOf(always)
  const rows = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { summary, security, responses }]) => [
      code(`${method.toUpperCase()} ${path}`),
      security.length > 0 ? roleOf(security) : responses[403] ? 'a process on this machine' : '',
      summary,
      Object.keys(responses)
        .filter((status) => status !== 'default')
        .join(', '),
    ]),
  )
  const errors = Object.entries(ERRORS).map(([name, { status, title, exit }]) => [code(name), status, title, exit])
  return page(
    'HTTP',
    'The HTTP API that every build serves. Features add routes of their own.',
    '```sh\ncurl -s http://127.0.0.1:42617/webhook -H "Authorization: Bearer $TOKEN" -H "Content-Type: application/json" -d \'{"message":"hello"}\'\n```',
    'A running daemon serves this list, with all schemas, as an OpenAPI 3.1 document at `GET /api/openapi.json`.',
    'A token has the role `operator` or `client`. A route for an `operator` answers a client with 403. A route for a `client` admits operators too; it shows a client only its own data.',
    table(['route', 'role', 'what it does', 'answers'], rows),
    '## Errors\n\nEvery error is JSON: `{"error": "<one sentence>", "code": "<code>", …}`. A 429 also has `retry_after` in whole seconds, and the header `Retry-After`.',
    table(['code', 'status', 'title', 'exit code of a command'], errors),
    '## Repeating a request\n\nA 503 means that nothing was begun, or that it is not known: the daemon starts, stops, or its database does not answer. It mostly has `Retry-After`; without it, wait a few seconds. A connection that breaks before the answer leaves the same doubt. Send `X-Idempotency-Key` with each `POST /webhook`, and repeat the request with the same key, to the same node or to any other node of a [cluster](cluster.md): the turn runs once. While it runs, and once it has ended, the repeat is answered 200 with `"status":"duplicate"` and `X-Turn-Id`; `GET /api/turns/{id}` has its answer. A 502 or 504 means that no model answered, and that the key is free: the same holds for a turn of a 202 whose state is `failed`. Without a key, a repeat is a new turn. Streamed answers and WebSockets end with their node: connect again, and read the turn or the messages of the session.',
  )
}

/** Returns the type of each frame, its description, and its members other than `type`. */
const frameRows = (schema) =>
  schema.options.map((option) => [
    code(option.entries.type.literal),
    getDescription(option) ?? '',
    Object.keys(option.entries)
      .filter((name) => name !== 'type')
      .map(code)
      .join(', '),
  ])

function events() {
  const rows = eventMembers().map(({ type, description, members }) => [code(type), description, members.map(code).join(', ')])
  return page(
    'Events',
    'The daemon reports what it does as events. Follow them as server-sent events at `GET /api/events`, or over a WebSocket at `/ws/events`:',
    '```sh\ncurl -N http://127.0.0.1:42617/api/events?types=turn_started,turn_completed -H "Authorization: Bearer $TOKEN"\n```',
    'Each event is one JSON object, the same on both. `types=a,b` selects types. Programs on this machine add events with `POST /api/channel-events`.',
    'Every event has `id` (`<run of the daemon>-<number>`; the number grows by one; see [Clusters](#clusters)), `timestamp` (RFC 3339) and `type`. Their schema is `#/components/schemas/Event` in `GET /api/openapi.json`. Later versions may add types: ignore types that you do not know.',
    table(['type', 'when', 'members'], [...rows, [code('x_…'), 'An event of a program that embeds Sluice', 'any']]),
    '## Resuming\n\nSend the id of the last event that you have seen as the header `Last-Event-ID`, or as `last_event_id` in the query. The daemon first sends the later events that it still keeps: the last 1,024 events, and at most 8 MiB. `GET /api/events/history` lists the kept events.',
    '## Missed events\n\nA frame of type `gap` reports missing events. `missed` is their number, or null if it is unknown, for example after a restart. Each subscriber has a buffer of 1 MiB. A subscriber that reads too slowly misses the events beyond its buffer; other subscribers are not affected. Once it has caught up, a `gap` reports how many events it missed. A subscriber that does not catch up within a minute is disconnected.',
    '## Clusters\n\nThe nodes of a cluster share their events. Every node sends the events of all nodes in the same order and with the same ids, `<name of the cluster>-<number>`, whose numbers have 16 digits and grow. When its stream ends, a client connects again to the proxy or to another node, with the id of its last event, and misses nothing that is still kept. It waits a second before the first attempt, longer before each further one, and as long as `Retry-After` says after a 503. An id that the nodes do not know, such as one of another cluster, gets a `gap`, and the client reads the state that it shows again. Events reach the subscribers of other nodes through the database, in transactions of their own, for which no turn waits. A node stores the events of 20 ms together. It reads those of other nodes at once while somebody subscribes there, and once a second otherwise: the first subscriber of a node may also get events of the second before. A node that cannot write to the database keeps up to 4,096 events, or 8 million characters, and drops further ones. Their numbers are left out, and each subscriber gets a `gap` with how many are missing. After a crash of the database server, its events are gone: each subscriber gets a `gap` whose `missed` is null, and later numbers are higher. `POST /api/channel-events` is answered 503 when its event was dropped. The frames of `/ws/chat` and of streamed answers, such as pieces of text, are no events: they stay on the node that has the connection.',
    '## Other frames\n\nOn `/api/events`, an event is `id: <id>`, `event: <type>` and one line of `data`. A new subscriber first gets the id from which it starts. On `/ws/events`, each event is one text message. The daemon also sends these frames (`#/components/schemas/StreamFrame`):',
    table(['type', 'when', 'members'], frameRows(streamFrameSchema)),
    '## `/ws/chat`\n\nA conversation over a WebSocket. `?session_id=` names its session; `POST /webhook` continues the same session with `X-Session-Id`. The turns of a session that the client names go on when its connection ends, and its questions stay open; a turn that a stop of the daemon interrupts goes on after the next start. Without a name, they are aborted. Send the token in `Authorization`, or from a browser in the subprotocols `sluice.v1, bearer.<token>`. Each message is one JSON object. The daemon sends (`#/components/schemas/ChatFrame`):',
    table(['type', 'when', 'members'], frameRows(chatFrameSchema)),
    'The client sends (`#/components/schemas/ChatClientFrame`):',
    table(['type', 'what it does', 'members'], frameRows(clientFrameSchema)),
    '`decision` is `approve` or `deny`. One turn runs at a time; eight more messages may wait. Closing the connection of a session without a name aborts its turn. A client that must lose no message and no piece of an answer posts its messages to `POST /api/turns` with `Prefer: respond-async` and `X-Idempotency-Key`, and follows each turn at `GET /api/turns/{id}/stream`, as the dashboard does. Close codes: 1003 a message was not text, 1008 a message arrived in too many pieces, 1009 a message was larger than 256 KiB, 1013 the client reads too slowly, 1001 the daemon stops, 4401 the token was revoked.',
    '## Visibility\n\nAn operator sees every event. A client sees the events of its own turns, tool calls and approvals.',
  )
}

function metrics() {
  const rows = Object.entries(METRICS).map(([name, { type, labels, help }]) => [code(name), type, labels.map(code).join(', '), help])
  return page(
    'Metrics',
    'The daemon serves its metrics in the text format of Prometheus at `GET /metrics`, in builds with `observability-metrics`:',
    '```toml\n[observability]\nbackends = ["textmetrics"]      # further backends at the same time: "otel", "log"\nmetrics_loopback_only = false   # true: only this machine may read them\n```',
    'The route needs no token: the metrics contain no text of messages, no sender and no secret, only names of routes, channels, models, tools and procedures. [guides/monitoring.md](guides/monitoring.md) sets up Prometheus, alerts and a dashboard with them.',
    'Counters begin at 0 with each start of the daemon. A series exists from its first value on. A histogram has the series `_bucket`, `_sum` and `_count`. `outcome` is `ok`, `error` or `aborted`; for procedures it is `completed`, `failed` or `cancelled`, `waiting` or `expired` for a run that a limit holds back, and `skipped`. A metric has at most 1,000 combinations of labels; further ones count under `other`.',
    table(['metric', 'type', 'labels', 'meaning'], rows),
  )
}

/** The columns of the table of styles: title and kind. */
const MARKUP_COLUMNS = [
  ['bold', 'bold'],
  ['italic', 'italic'],
  ['struck through', 'strike'],
  ['code', 'code'],
  ['blocks of code', 'pre'],
  ['quotes', 'quote'],
  ['words of links', 'link'],
]

/** Returns the page of channels with its table filled in: each channel's name, platform, way of arrival and page. */
async function channels() {
  const rows = ROWS.filter(([, row]) => row.kind === 'channel').map(([id, { routes = [], target, moreSections = [] }]) => {
    const { description, dependencies } = JSON.parse(readFileSync(join(ROOT, 'packages', id, 'package.json'), 'utf8'))
    const names = [
      ...new Set([id.replace('channel-', '').replaceAll('-', '_'), ...moreSections.map((path) => path.split('.').at(-1))]),
    ].map(code)
    const posts = routes.filter((route) => route.startsWith('POST ')).map(code)
    const opens = posts.length === 0 || dependencies.ws ? ['a connection that Sluice opens'] : []
    return [
      names.join(', ') + (target ? ` (notification target ${code(target)})` : ''),
      description,
      [...opens, posts.join(', ')].filter(Boolean).join(', or '),
      `[set up](../../packages/${id}/README.md)`,
    ]
  })
  const markupRows = []
  for (const [id] of ROWS.filter(([, row]) => row.kind === 'channel')) {
    const file = join(ROOT, 'packages', id, 'src/markup.ts')
    if (!existsSync(file)) continue
    const { MARKUP } = await import(pathToFileURL(file))
    const cells = MARKUP_COLUMNS.map(([, kind]) => (MARKUP.shows.includes(kind) ? 'yes' : ''))
    markupRows.push([
      code(id.replace('channel-', '').replaceAll('-', '_')),
      ...cells,
      MARKUP.shows.includes('pre') ? 'columns, or a list' : 'a list',
    ])
  }
  const arrivalRows = ROWS.flatMap(([id]) => {
    const abilities = abilitiesOf(id)
    return abilities ? [[code(id.replace('channel-', '').replaceAll('-', '_')), ...abilityCells(abilities)]] : []
  })
  const columns = ['channel', 'platform', 'people can send', 'names of writers', 'the bot can send', 'is kept while Sluice is away']
  const page = readFileSync(join(ROOT, 'docs/channels/README.md'), 'utf8')
  const filled = ['<!-- channels -->', table(['channel', 'platform and API', 'how messages arrive', 'page'], rows), '<!-- /channels -->']
  const shown = ['<!-- markup -->', table(['channel', ...MARKUP_COLUMNS.map(([title]) => title), 'tables'], markupRows), '<!-- /markup -->']
  const arrivals = ['<!-- arrivals -->', table(columns, arrivalRows), '<!-- /arrivals -->']
  return page
    .replace(/<!-- arrivals -->.*<!-- \/arrivals -->/s, () => arrivals.join('\n'))
    .replace(/<!-- channels -->.*<!-- \/channels -->/s, () => filled.join('\n'))
    .replace(/<!-- markup -->.*<!-- \/markup -->/s, () => shown.join('\n'))
}

/** The systems of the table of compatibility: the key of a row of the catalogue, and whether the tests run there. */
const SYSTEMS = [
  { name: 'Linux x64', key: 'linux', isTested: true },
  { name: 'Linux arm64', key: 'linux', isTested: false },
  { name: 'macOS', key: 'macos', isTested: false },
  { name: 'Windows', key: 'windows', isTested: false },
]

/** Returns the page of compatibility with its table filled in. */
function compatibility() {
  const supportOf = ({ runsOn }) =>
    SYSTEMS.map(({ key, isTested }) => (runsOn && !runsOn.includes(key) ? 'unsupported' : isTested ? 'tested' : 'expected'))
  const rows = [
    ['the daemon, its API and the commands', ...supportOf({})],
    ['`sluice service`', ...supportOf({ runsOn: ['linux', 'macos'] })],
    ...ROWS.map(([id, row]) => [code(id), ...supportOf(row)]),
  ]
  const text = readFileSync(join(ROOT, 'docs/compatibility.md'), 'utf8')
  const filled = ['<!-- systems -->', table(['feature', ...SYSTEMS.map(({ name }) => name)], rows), '<!-- /systems -->']
  return text.replace(/<!-- systems -->.*<!-- \/systems -->/s, () => filled.join('\n'))
}

/** Returns the page of embedding with the commands that install the packages, as each README of a package has them. */
function embedding() {
  const page = readFileSync(join(ROOT, 'docs/embedding.md'), 'utf8')
  return page.replace(/<!-- packages -->.*<!-- \/packages -->/s, () => ['<!-- packages -->', FROM_A_CLONE, '<!-- /packages -->'].join('\n'))
}

const asked = process.argv.indexOf('--feature')
if (asked > 0) {
  process.stdout.write(await ownFeature(process.argv[asked + 1]))
  process.exit()
}

const pages = {
  'docs/compatibility.md': compatibility(),
  'docs/channels/README.md': await channels(),
  'docs/embedding.md': embedding(),
  'docs/features.md': features(),
  'docs/tools.md': await decisionsPage(everything),
  'docs/configuration.md': configuration(),
  'docs/commands.md': commands(),
  'docs/http.md': await http(),
  'docs/events.md': events(),
  'docs/metrics.md': metrics(),
  'docs/performance.md': performancePage(),
  ...readmes(everything),
}
const check = process.argv.includes('--check')
for (const [name, text] of Object.entries(pages)) {
  const file = join(ROOT, name)
  if (!check) writeFileSync(file, text)
  else if (readFileSync(file, 'utf8') !== text) {
    console.error(`${name} is out of date: run pnpm docs:generate`)
    process.exitCode = 1
  }
}
