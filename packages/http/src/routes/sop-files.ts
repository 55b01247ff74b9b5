/** `/api/sops`: the procedures on disk as they are now, before and after an operator accepts them, and simulations of events. */

import { priceOf } from '@sluice/agent'
import { agentSection, costSection, type LoadedConfig, providerSection, turnLimits } from '@sluice/config'
import type { Runtime } from '@sluice/runtime'
import { AppError, defineRoute, type Route } from '@sluice/sdk'
import type { ModelLimits, SopDefinition } from '@sluice/sop'
import { type ProcedureFiles, type SopTexts, sopNamed, waitingIn } from '@sluice/sop/procedure-files'
import {
  definitionSchema,
  problemSchema,
  shownDefinition,
  shownProblem,
  shownWaiting,
  simulatedSchema,
  waitingSchema,
} from '@sluice/sop/shown-definition'
import * as v from 'valibot'
import { requireCredential } from '../auth/require-credential.ts'
import { recordAction } from '../request/record-action.ts'

/** The largest simulated event in bytes, with its JSON around it. */
const EVENT_BYTES_MAX = 1024 * 1024 + 1024
const FILE_CHARS_MAX = 256 * 1024
/** Both files as JSON, in which a character may be escaped. */
const FILES_BYTES_MAX = 4 * FILE_CHARS_MAX + 1024

const fileText = (name: string) => v.pipe(v.string(), v.maxLength(FILE_CHARS_MAX), v.description(`The text of ${name}`))
const texts = { toml: fileText('SOP.toml'), md: fileText('SOP.md') }
const filesSchema = v.object({
  ...texts,
  version: v.pipe(v.nullable(v.string()), v.description('The SHA-256 of both texts; null: there is no such procedure yet')),
})

const openedSchema = v.object({
  ...filesSchema.entries,
  unreadable: v.pipe(v.array(v.string()), v.description('The files that cannot be read, each with the reason; their text is empty')),
})

export const sopFileRoutes = (runtime: Runtime): Route[] => [
  definitionRoute(runtime.procedures),
  problemsRoute(runtime.procedures),
  waitingRoute(runtime.procedures),
  acceptRoute(runtime),
  adoptRoute(runtime),
  simulateRoute(runtime),
  openRoute(runtime.procedures),
  checkRoute(runtime.procedures),
  writeRoute(runtime),
]

const definitionRoute = ({ read }: ProcedureFiles): Route =>
  defineRoute({
    method: 'GET',
    path: '/api/sops/:name/definition',
    summary: 'One procedure as its files define it now: its triggers, its steps, and the steps that wait for a person',
    auth: 'operator',
    answers: { 200: { description: 'The definition', schema: definitionSchema } },
    handle: async ({ params: { name = '' } }) => shownDefinition(sopNamed(await read(), name)),
  })

const problemsRoute = ({ read }: ProcedureFiles): Route =>
  defineRoute({
    method: 'GET',
    path: '/api/sops/problems',
    summary: 'The problems in the files of procedures, each with its place',
    auth: 'operator',
    answers: {
      200: {
        description: 'Grouped by folder',
        schema: v.object({
          folder: v.pipe(v.string(), v.description('The folder of procedures')),
          editable: v.pipe(
            v.nullable(v.string()),
            v.description('The folder whose procedures `PUT /api/sop-files/{folder}` writes; null if the agent can write it'),
          ),
          ok: v.pipe(v.boolean(), v.description('True if there are no errors')),
          loaded: v.pipe(v.number(), v.description('The number of procedures without errors')),
          broken: v.pipe(v.number(), v.description('The number of folders with errors')),
          waiting: v.pipe(v.number(), v.description('The number of procedures that wait for an operator')),
          problems: v.array(problemSchema),
        }),
      },
    },
    async handle() {
      const { folder, editable, definitions, broken, waiting, problems } = await read()
      return {
        folder,
        editable,
        ok: problems.every(({ severity }) => severity !== 'error'),
        loaded: definitions.length,
        broken,
        waiting: waiting.length,
        problems: problems.map(shownProblem),
      }
    },
  })

const waitingRoute = ({ read }: ProcedureFiles): Route =>
  defineRoute({
    method: 'GET',
    path: '/api/sops/waiting',
    summary: 'The procedures in the workspace that are not loaded until an operator accepts them',
    auth: 'operator',
    query: v.object({ folder: v.exactOptional(v.pipe(v.string(), v.description('Only the procedure in this folder of the workspace'))) }),
    answers: { 200: { description: 'With the texts of both files', schema: v.object({ waiting: v.array(waitingSchema) }) } },
    async handle({ query: { folder } }) {
      const sops = await read()
      const waiting = folder === undefined ? sops.waiting : [waitingIn(sops, folder)]
      return { waiting: waiting.map(shownWaiting) }
    },
  })

const acceptRoute = (runtime: Runtime): Route =>
  defineRoute({
    method: 'POST',
    path: '/api/sops/waiting/:folder/accept',
    summary: 'Accept a procedure in the workspace; the hash identifies the content that the operator has read',
    auth: 'operator',
    body: v.object({ hash: v.string() }),
    answers: {
      200: { description: 'Accepted and loaded', schema: v.object({ accepted: v.string(), hash: v.string() }) },
      409: { description: 'The files have another hash' },
    },
    async handle({ by, params: { folder: name = '' }, body }) {
      const { folder, hash } = await runtime.procedures.accept(name, body.hash)
      await recordAction(runtime, 'procedure_accepted', by, { folder, hash })
      return { accepted: folder, hash }
    },
  })

const adoptRoute = (runtime: Runtime): Route =>
  defineRoute({
    method: 'POST',
    path: '/api/sops/adopt',
    summary: 'Move accepted procedures out of the workspace, to the folder that the agent cannot write',
    auth: 'operator',
    body: v.object({ folder: v.exactOptional(v.pipe(v.string(), v.description('Only the procedure in this folder of the workspace'))) }),
    answers: {
      200: {
        description: 'The new folders, and the folders that stay because no operator has accepted them',
        schema: v.object({ adopted: v.array(v.string()), waiting: v.array(v.string()) }),
      },
      409: { description: 'The new folder exists already' },
    },
    async handle({ by, body: { folder } }) {
      const moved = await runtime.procedures.adopt(folder)
      if (moved.adopted.length > 0) await recordAction(runtime, 'procedures_adopted', by, { folders: moved.adopted })
      return moved
    },
  })

const simulateRoute = ({ procedures, snapshot }: Runtime): Route =>
  defineRoute({
    method: 'POST',
    path: '/api/sops/simulate',
    summary: 'Walk an event through triggers, conditions, steps, approvals and costs, without running or storing anything',
    auth: 'operator',
    bodyBytesMax: EVENT_BYTES_MAX + FILES_BYTES_MAX,
    body: v.object({
      event: v.pipe(v.unknown(), v.description('`source`, `topic` and `payload`, which is any JSON value')),
      sop: v.exactOptional(v.pipe(v.string(), v.description('Only this procedure'))),
      draft: v.exactOptional(
        v.pipe(v.object({ folder: v.string(), ...texts }), v.description('Only this procedure, which is in no file yet')),
      ),
    }),
    answers: { 200: { description: 'One entry for each procedure', schema: v.object({ procedures: v.array(simulatedSchema) }) } },
    async handle({ body: { event, sop, draft } }) {
      const { readEvent, simulate } = await import('@sluice/sop/simulate')
      const definitions = draft ? [await definitionOf(procedures, draft)] : await definitionsNamed(procedures, sop)
      return { procedures: simulate(definitions, readEvent(event), limitsOf(snapshot().config)) }
    },
  })

async function definitionsNamed({ read }: ProcedureFiles, name: string | undefined): Promise<readonly SopDefinition[]> {
  const sops = await read()
  return name === undefined ? sops.definitions : [sopNamed(sops, name)]
}

/** Throws `invalid_request` for a draft with errors. */
async function definitionOf({ check }: ProcedureFiles, draft: SopTexts & { readonly folder: string }): Promise<SopDefinition> {
  const { definition } = await check(draft.folder, draft)
  if (!definition) throw new AppError('invalid_request', 'The draft has errors: check it first')
  return definition
}

const openRoute = ({ open }: ProcedureFiles): Route =>
  defineRoute({
    method: 'GET',
    path: '/api/sop-files/:folder',
    summary: 'Both files of a procedure, for an editor; empty texts for a folder that is not there',
    auth: 'operator',
    answers: {
      200: { description: 'The texts with their version', schema: openedSchema },
      403: { description: 'The agent can write the folder of procedures' },
    },
    async handle({ params: { folder = '' } }) {
      const { toml, md, version, unreadable } = await open(folder)
      return { toml, md, version, unreadable: [...unreadable] }
    },
  })

const checkRoute = ({ check }: ProcedureFiles): Route =>
  defineRoute({
    method: 'POST',
    path: '/api/sop-files/:folder/check',
    summary: 'Check the files of a procedure without saving them',
    auth: 'operator',
    bodyBytesMax: FILES_BYTES_MAX,
    body: v.object(texts),
    answers: {
      200: {
        description: 'The problems, each with its place, and the name of the procedure if there are no errors',
        schema: v.object({ ok: v.boolean(), name: v.nullable(v.string()), problems: v.array(problemSchema) }),
      },
    },
    async handle({ params: { folder = '' }, body }) {
      const { definition, problems } = await check(folder, body)
      return { ok: definition !== undefined, name: definition?.name ?? null, problems: problems.map(shownProblem) }
    },
  })

const writeRoute = (runtime: Runtime): Route =>
  defineRoute({
    method: 'PUT',
    path: '/api/sop-files/:folder',
    summary: 'Write both files of a procedure and load it; on this node of a cluster',
    auth: 'operator',
    bodyBytesMax: FILES_BYTES_MAX,
    body: filesSchema,
    answers: {
      200: {
        description: 'Written and loaded',
        schema: v.object({ folder: v.string(), version: v.string() }),
      },
      409: { description: 'The files have another version' },
    },
    async handle(request) {
      requireCredential(request, 'Without pairing, the files of procedures are changed on the machine only')
      const { by, body, params } = request
      const { folder = '' } = params
      const version = await runtime.procedures.write({ folder, ...body })
      await recordAction(runtime, 'procedure_written', by, { folder, hash: version, before: body.version })
      return { folder, version }
    },
  })

/** Returns the limits of one agent turn, with the price of the configured model if it is known. */
function limitsOf(config: LoadedConfig): ModelLimits {
  const { kind, model } = config.core(providerSection)
  const { steps, tokens } = turnLimits(config.core(agentSection), 'operator')
  const price = kind && model ? priceOf(config.core(costSection).prices, { provider: kind, model }) : undefined
  return { callsMax: steps, tokensMax: tokens, ...(price && { price }) }
}
