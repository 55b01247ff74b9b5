/** Reads the public surface of a build: keys of the configuration, requests, answers, events, commands and exports of packages. */
import { existsSync, globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { allOptions, type CommandDescription } from '@sluice/cli/command'
import { COMMANDS } from '@sluice/cli/command-descriptions'
import { featureCommands } from '@sluice/cli/feature-commands'
import { FORMER_COMMANDS } from '@sluice/cli/former-commands'
import { FORMER_KEYS } from '@sluice/config'
import { ROOT, run, scratch, startDaemon } from '../daemons/bundle.ts'
import { exportedNames } from './exported-names.ts'
import { addSchema, type Items, type JsonSchema, type References } from './schema-items.ts'
import type { Surface } from './surfaces.ts'

interface Operation {
  readonly security?: readonly { readonly bearer?: readonly string[] }[]
  readonly parameters?: readonly { readonly name: string; readonly in: string; readonly required?: boolean; readonly schema?: JsonSchema }[]
  readonly requestBody?: { readonly required?: boolean; readonly content: Content }
  readonly responses: Readonly<Record<string, { readonly content?: Content }>>
}
type Content = Readonly<Record<string, { readonly schema?: JsonSchema }>>

export interface OpenApi {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: { readonly schemas: References }
}

/** Reads everything of a bundle that it tells by itself. `profile` is a folder of `dist/`, or an absolute path. */
export async function collectFromBundle(profile: string): Promise<Pick<Record<Surface, Items>, BundleSurface>> {
  const { dir, dispose } = scratch('[gateway]\nrequire_pairing = false\n')
  try {
    const { code, stdout, stderr } = await run(profile, ['config', 'schema', '--data-dir', dir])
    if (code !== 0) throw new Error(`"config schema" ended with ${code}: ${stderr}`)
    const daemon = await startDaemon(profile, dir)
    try {
      const document = (await (await fetch(`${daemon.url}/api/openapi.json`)).json()) as OpenApi
      return { configuration: configurationOf(JSON.parse(stdout)), ...apiOf(document) }
    } finally {
      daemon.kill('SIGTERM')
      await daemon.exited
    }
  } finally {
    dispose()
  }
}

export type BundleSurface = 'configuration' | 'requests' | 'answers' | 'events'

function configurationOf(schema: JsonSchema): Items {
  const items: Items = {}
  addSchema(items, '', schema)
  const { '': _, ...keys } = items
  return keys
}

function apiOf({ paths, components: { schemas } }: OpenApi): Pick<Record<Surface, Items>, 'requests' | 'answers' | 'events'> {
  const requests: Items = {}
  const answers: Items = {}
  const events: Items = {}
  for (const [path, methods] of Object.entries(paths)) {
    for (const [method, operation] of Object.entries(methods)) {
      // The name of a parameter of the path is no part of a request.
      const name = `${method.toUpperCase()} ${path.replaceAll(/\{[^}]*\}/g, '{}')}`
      addRequest(requests, name, operation, schemas)
      for (const [status, { content = {} }] of Object.entries(operation.responses)) {
        if (status === 'default') continue
        answers[`${name} ${status}`] = {}
        for (const [type, { schema }] of Object.entries(content))
          if (schema) addSchema(answers, `${name} ${status} ${type}`, schema, schemas)
      }
    }
  }
  const { Event, StreamFrame, ChatFrame, ChatClientFrame } = schemas
  if (Event) addSchema(events, 'event', Event, schemas)
  if (StreamFrame) addSchema(events, 'stream', StreamFrame, schemas)
  if (ChatFrame) addSchema(events, 'chat', ChatFrame, schemas)
  if (ChatClientFrame) addSchema(requests, 'chat', ChatClientFrame, schemas)
  return { requests, answers, events }
}

function addRequest(items: Items, name: string, { security = [], parameters = [], requestBody }: Operation, schemas: References): void {
  // A scheme without scopes is for every device, and those of earlier releases are operators.
  const roles = security.flatMap(({ bearer }) => (bearer?.length === 0 ? ['operator'] : (bearer ?? [])))
  items[name] = roles.length > 0 ? { values: roles.toSorted() } : {}
  for (const { name: parameter, in: place, required, schema = {} } of parameters) {
    if (place === 'path') continue
    const item = `${name} ${place === 'query' ? `?${parameter}` : `${parameter.toLowerCase()}:`}`
    addSchema(items, item, schema, schemas)
    if (required) items[item] = { ...items[item], required: true }
  }
  for (const [type, { schema }] of Object.entries(requestBody?.content ?? {})) {
    if (!schema) continue
    addSchema(items, `${name} ${type}`, schema, schemas)
    if (requestBody?.required) items[`${name} ${type}`] = { ...items[`${name} ${type}`], required: true }
  }
}

/** The options of each command, and the number of arguments that it requires. */
export function collectCommands(commands: readonly CommandDescription[]): Items {
  const items: Items = {}
  for (const command of commands) {
    const { name, usage, passesOn } = command
    const required = usage?.replaceAll(/\[[^\]]*\]/g, '').match(/<[^>]*>/g) ?? []
    items[name] = passesOn && usage === undefined ? {} : { types: [`${required.length} arguments`] }
    for (const [option, { value, short }] of Object.entries(allOptions(command))) {
      items[`${name} --${option}`] = { types: [value === undefined ? 'a switch' : 'a value'] }
      if (short) items[`${name} -${short}`] = {}
    }
  }
  return items
}

interface Manifest {
  readonly name: string
  readonly private?: boolean
  readonly bin?: Readonly<Record<string, string>>
  readonly exports?: Readonly<Record<string, string>>
  readonly publishConfig?: { readonly exports?: Readonly<Record<string, unknown>> }
}

/** The names that the published entries of each public package export, with types. */
export function collectPackages(root = ROOT): Items {
  const items: Items = {}
  for (const file of globSync('packages/*/package.json', { cwd: root })) {
    const {
      name,
      private: isPrivate,
      exports = {},
      publishConfig,
      bin = {},
    } = JSON.parse(readFileSync(join(root, file), 'utf8')) as Manifest
    if (isPrivate) continue
    for (const command of Object.keys(bin)) items[`${name} bin ${command}`] = {}
    for (const entry of Object.keys(publishConfig?.exports ?? exports)) {
      const source = join(root, file, '..', exports[entry] ?? '')
      const id = name + entry.slice(1)
      items[id] = {}
      if (existsSync(source) && source.endsWith('.ts'))
        for (const { name, kind } of exportedNames(source)) items[`${id} ${name}`] = { types: [kind] }
    }
  }
  return items
}

/** Reads every surface: those of a built bundle, and those of the sources. */
export async function collectSurface(profile: string): Promise<Record<Surface, Items>> {
  const commands = collectCommands([...COMMANDS, ...featureCommands([])])
  const { configuration, ...others } = await collectFromBundle(profile)
  return {
    ...others,
    configuration: { ...configuration, ...formerItems(FORMER_KEYS.map(({ key }) => key)) },
    commands: { ...commands, ...formerItems(FORMER_COMMANDS.map(({ name }) => name)) },
    packages: collectPackages(),
  }
}

/** A former name is an item of its own, so that its row is not deleted before a release has warned. */
const formerItems = (names: readonly string[]): Items => Object.fromEntries(names.map((name) => [`former ${name}`, {}]))
