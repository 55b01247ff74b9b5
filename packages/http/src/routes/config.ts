/** `/api/config`: the configuration in force, and its change by the rules of `sluice config set`. Secrets are never shown. */
import type { ChangePreview, SettingChange } from '@sluice/config/settings'
import type { Runtime } from '@sluice/runtime'
import { defineRoute, type Route } from '@sluice/sdk'
import * as v from 'valibot'
import { requireCredential } from '../auth/require-credential.ts'
import { recordAction } from '../request/record-action.ts'

const CHANGES_MAX = 64
const BODY_BYTES_MAX = 262_144

const keySchema = v.object({
  key: v.pipe(v.string(), v.description('The dotted key, such as `provider.model`')),
  value: v.pipe(v.unknown(), v.description('The value in force; a secret is `[secret]`')),
  source: v.picklist(['file', 'environment', 'default']),
  variable: v.pipe(v.nullable(v.string()), v.description('The environment variable that the value is from')),
})

const version = v.pipe(v.string(), v.description('Changes whenever the file does'))
const warnings = v.array(v.string())

const configSchema = v.object({
  file: v.string(),
  version,
  editable: v.pipe(v.boolean(), v.description('False: the program that embeds Sluice holds the configuration')),
  shared: v.pipe(v.boolean(), v.description('True: the database of the cluster holds the configuration, except for `own`')),
  own: v.pipe(v.array(v.string()), v.description('The sections and keys that the file of this node holds, such as `store`, when `shared`')),
  keys: v.array(keySchema),
  warnings,
  left_out: v.array(v.object({ section: v.string(), feature: v.string(), build: v.string() })),
})

const changesSchema = v.pipe(
  v.array(
    v.object({
      key: v.pipe(v.string(), v.minLength(1), v.maxLength(512)),
      value: v.optional(v.pipe(v.unknown(), v.description('A JSON value of the type of the key; null removes the key from the file'))),
    }),
  ),
  v.minLength(1),
  v.maxLength(CHANGES_MAX),
)

const previewSchema = v.object({
  version,
  changes: v.array(
    v.object({
      key: v.string(),
      before: v.pipe(v.unknown(), v.description('The value in force; null: none')),
      after: v.unknown(),
      secret: v.boolean(),
    }),
  ),
  warnings,
})

const shownPreview = ({ version, changes, warnings }: ChangePreview) => ({
  version,
  changes: changes.map(({ key, before, after, isSecret }) => ({ key, before, after, secret: isSecret })),
  warnings,
})

export const configRoutes = (runtime: Runtime): Route[] => [
  readRoute(runtime),
  schemaRoute(runtime),
  previewRoute(runtime),
  saveRoute(runtime),
]

const readRoute = ({ settings }: Runtime): Route =>
  defineRoute({
    method: 'GET',
    path: '/api/config',
    summary: 'The configuration in force, with the source of each value',
    auth: 'operator',
    answers: { 200: { description: 'The configuration', schema: configSchema } },
    async handle() {
      const { file, version, isEditable, isShared, own, keys, warnings, leftOut } = await settings.shown()
      return { file, version, editable: isEditable, shared: isShared, own, keys, warnings, left_out: leftOut }
    },
  })

const schemaRoute = ({ settings }: Runtime): Route =>
  defineRoute({
    method: 'GET',
    path: '/api/config/schema',
    summary: 'The JSON Schema of the configuration file; `writeOnly` marks secrets, `x-task` groups sections',
    auth: 'operator',
    answers: { 200: { description: 'JSON Schema, draft 7', schema: v.looseObject({}) } },
    handle: () => settings.schema(),
  })

const previewRoute = ({ settings }: Runtime): Route =>
  defineRoute({
    method: 'POST',
    path: '/api/config/preview',
    summary: 'Check changes of the configuration and show what they would do, without saving them',
    auth: 'operator',
    bodyBytesMax: BODY_BYTES_MAX,
    body: v.object({ changes: changesSchema }),
    answers: { 200: { description: 'The changes are valid', schema: previewSchema } },
    handle: async ({ body: { changes } }) => shownPreview(await settings.preview(changes as readonly SettingChange[])),
  })

const saveRoute = (runtime: Runtime): Route =>
  defineRoute({
    method: 'PUT',
    path: '/api/config',
    summary: 'Change keys of the configuration file, all or none; comments stay, and secrets are encrypted',
    auth: 'operator',
    bodyBytesMax: BODY_BYTES_MAX,
    body: v.object({
      changes: changesSchema,
      version: v.pipe(v.string(), v.description('The version that the changes were made from; 409 when the file has another one')),
    }),
    answers: {
      200: { description: 'Saved; the daemon takes the file over within a second', schema: previewSchema },
      409: { description: 'The file was changed meanwhile' },
    },
    async handle(request) {
      requireCredential(request, 'Without pairing, the configuration is changed on the command line only: `sluice config set`')
      const { by, body } = request
      const { changes, version } = body
      const saved = await runtime.settings.save(changes as readonly SettingChange[], version)
      const keys = saved.changes.map(({ key }) => key)
      await recordAction(runtime, 'config_changed', by, { keys })
      runtime.log.info('configuration changed', { by, keys })
      return shownPreview(saved)
    },
  })
