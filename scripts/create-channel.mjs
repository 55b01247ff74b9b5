// Writes a new channel package that works against a fake of its platform: `pnpm create:channel <name>` for a channel with a webhook,
// with `--connection` for a channel that opens a connection. `--no-install` leaves the lockfile and node_modules as they are.
import { createHash, createHmac } from 'node:crypto'
import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { ROWS } from '../packages/sdk/src/feature/catalogue.ts'
import { addToRoot, run, writePackage } from './create-package.mjs'

const ROOT = resolve(import.meta.dirname, '..')
const TEMPLATES = join(import.meta.dirname, 'create-channel')
const USAGE = 'usage: pnpm create:channel <name> [--connection] [--no-install]'
/** A name is a configuration key, a URL path and a part of identifiers. */
const NAME = /^[a-z][a-z0-9]{1,30}$/

function fail(message) {
  process.stderr.write(`${message}\n${USAGE}\n`)
  process.exit(2)
}

function readArguments() {
  const options = { connection: { type: 'boolean' }, 'no-install': { type: 'boolean' } }
  try {
    const { values, positionals } = parseArgs({ allowPositionals: true, options })
    if (positionals.length !== 1) fail(`Give one name; got ${positionals.length}.`)
    return { name: positionals[0], isConnection: values.connection === true, isInstalled: values['no-install'] !== true }
  } catch (error) {
    return fail(error.message)
  }
}

/** Ends the process if no channel can have this name. */
function checkName(name) {
  if (!NAME.test(name))
    fail(`'${name}' cannot be the name of a channel: it must be 2 to 31 lower-case letters and digits, and begin with a letter.`)
  const row = ROWS.find(([id]) => id === `channel-${name}`)?.[1]
  if (existsSync(join(ROOT, 'packages', `channel-${name}`)) || row) fail(`There is a channel '${name}' already: packages/channel-${name}.`)
}

/** Returns the values of the placeholders in the templates. */
function valuesOf(name, isConnection) {
  const Name = name.charAt(0).toUpperCase() + name.slice(1)
  const body = '{"type":"message","id":"m-1","conversation":"room-1","author":{"id":"ada","bot":false},"text":"hello","at":1767225600}'
  const webhook = {
    webhookExport: ',\n    "./webhook": "./src/webhook.ts"',
    webhookPublished: ',\n      "./webhook": {\n        "types": "./dist/webhook.d.ts",\n        "default": "./dist/webhook.js"\n      }',
    arrival: 'Messages arrive as signed webhooks.',
    setup: [
      `2. Choose a long random text as \`webhook_secret\`, and give it to ${Name}.`,
      '3. List the people who may write in `allowed_users`.',
      '4. Fill in the section below and start Sluice where the platform reaches it over HTTPS.',
      `5. In ${Name}, add a webhook with the URL \`<public url>/${name}\`.`,
    ].join('\n'),
    secretLine: 'webhook_secret = "a-long-random-text"\n',
    verification: `## How requests are verified\n\nThe header \`X-${Name}-Signature\` has the HMAC-SHA256 of the body in hex. Sluice answers a request without a valid one with 401.\n\n`,
  }
  const connection = {
    webhookExport: '',
    webhookPublished: '',
    arrival: 'Sluice polls for events, so it needs no public address.',
    setup: '2. List the people who may write in `allowed_users`.\n3. Fill in the section below and start Sluice.',
    secretLine: '',
    verification: '',
  }
  return {
    name,
    Name,
    NAME: name.toUpperCase(),
    id: name,
    body,
    bytes: String(body.length),
    sha256: createHash('sha256').update(body).digest('hex').slice(0, 16),
    signature: createHmac('sha256', `${name}-webhook-secret-01`).update(body).digest('hex'),
    ...(isConnection ? connection : webhook),
  }
}

/** The two steps that are left, as text to paste. */
function nextSteps(name, isConnection) {
  const routes = isConnection ? [] : [`    routes: ['POST /${name}'],`]
  return [
    '1. Add this row to packages/sdk/src/feature/catalogue.ts, next to the other channels:',
    '',
    `  'channel-${name}': {`,
    '    ...always,',
    "    kind: 'channel',",
    `    summary: '${name}',`,
    `    section: 'channels_config.${name}',`,
    ...routes,
    '  },',
    '',
    `2. In profiles/always.ts, import the channel, sorted by name, and add it to the list ${isConnection ? '`chats`' : '`webhooks`'}:`,
    '',
    `import ${name} from '@sluice/channel-${name}'`,
    '',
    'Then run:',
    '',
    '  pnpm docs:generate',
    `  pnpm unit packages/channel-${name} qa/src/channels.test.ts qa/src/bare-webhooks.test.ts qa/src/vectors`,
    '  pnpm types && pnpm lint',
    ...(isConnection ? [] : [`  pnpm fuzz --scheme ${name} --count 10000`]),
    '  pnpm chaos --suite messages --loops 5',
    '',
    "CONTRIBUTING.md describes how to replace the template's platform with the real one.",
  ].join('\n')
}

const { name, isConnection, isInstalled } = readArguments()
checkName(name)
const folder = join(ROOT, 'packages', `channel-${name}`)
const parts = ['shared', isConnection ? 'connection' : 'webhook'].map((part) => join(TEMPLATES, part))
const files = writePackage(folder, valuesOf(name, isConnection), parts)
addToRoot(`@sluice/channel-${name}`)
run(join(ROOT, 'node_modules', '.bin', 'biome'), 'check', '--write', 'package.json', join('packages', `channel-${name}`))
if (isInstalled) run('pnpm', 'install', '--prefer-offline', '--no-frozen-lockfile')
console.log(
  `Wrote packages/channel-${name} with ${files.length} files, and added it to package.json. Two steps are left:\n\n${nextSteps(name, isConnection)}`,
)
