/** `/api/sops`: the procedures on disk as they are now, before and after an operator accepts them, and simulations of events. */

import { priceOf } from '@sluice/agent'
import { agentSection, costSection, type LoadedConfig, providerSection, turnLimits } from '@sluice/config'
import type { Runtime } from '@sluice/runtime'
import { defineRoute, type Route } from '@sluice/sdk'
import type { ModelLimits } from '@sluice/sop'
import { type ProcedureFiles, sopNamed, waitingIn } from '@sluice/sop/procedure-files'
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
import { recordAction } from '../request/record-action.ts'

/** The largest simulated event in bytes, with its JSON around it. */
const EVENT_BYTES_MAX = 1024 * 1024 + 1024

export const sopFileRoutes = (runtime: Runtime): Route[] => [
  definitionRoute(runtime.procedures),
  problemsRoute(runtime.procedures),
  waitingRoute(runtime.procedures),
  acceptRoute(runtime),
  adoptRoute(runtime),
  simulateRoute(runtime),
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
          folder: v.pipe(v.string(), v.description('The folder of procedures that the agent cannot write')),
          ok: v.pipe(v.boolean(), v.description('True if there are no errors')),
          loaded: v.pipe(v.number(), v.description('The number of procedures without errors')),
          broken: v.pipe(v.number(), v.description('The number of folders with errors')),
          waiting: v.pipe(v.number(), v.description('The number of procedures that wait for an operator')),
          problems: v.array(problemSchema),
        }),
      },
    },
    async handle() {
      const { folder, definitions, broken, waiting, problems } = await read()
      return {
        folder,
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
    bodyBytesMax: EVENT_BYTES_MAX,
    body: v.object({
      event: v.pipe(v.unknown(), v.description('`source`, `topic` and `payload`, which is any JSON value')),
      sop: v.exactOptional(v.pipe(v.string(), v.description('Only this procedure'))),
    }),
    answers: { 200: { description: 'One entry for each procedure', schema: v.object({ procedures: v.array(simulatedSchema) }) } },
    async handle({ body: { event, sop } }) {
      const { readEvent, simulate } = await import('@sluice/sop/simulate')
      const sops = await procedures.read()
      const definitions = sop === undefined ? sops.definitions : [sopNamed(sops, sop)]
      return { procedures: simulate(definitions, readEvent(event), limitsOf(snapshot().config)) }
    },
  })

/** Returns the limits of one agent turn, with the price of the configured model if it is known. */
function limitsOf(config: LoadedConfig): ModelLimits {
  const { kind, model } = config.core(providerSection)
  const { steps, tokens } = turnLimits(config.core(agentSection), 'operator')
  const price = kind && model ? priceOf(config.core(costSection).prices, { provider: kind, model }) : undefined
  return { callsMax: steps, tokensMax: tokens, ...(price && { price }) }
}
