/** `/api/commands`: runs commands of features for the command line, on the control socket only. */

import type { Runtime } from '@sluice/runtime'
import { type CommandFrame, commandFrameSchema, commandInputSchema } from '@sluice/runtime/command-frames'
import { AppError, defineRoute, type Route, type RouteRequest } from '@sluice/sdk'
import * as v from 'valibot'
import { jsonLines } from '../streams/json-lines.ts'

/** The longest arguments of a command, as JSON. */
const BODY_BYTES_MAX = 1_048_576

const commandSchema = v.object({
  words: v.pipe(v.array(v.string()), v.minLength(1), v.description('The words of the command and its arguments')),
  cwd: v.pipe(v.string(), v.description('The absolute path of the folder that relative paths in the arguments refer to')),
  json: v.optional(v.boolean(), false),
  asks: v.optional(v.pipe(v.boolean(), v.description('True: a person answers the questions of the command')), false),
})

/** A command reads files and devices of the machine as its caller names them, which only a user of the machine may do. */
function requireControlSocket({ onControlSocket }: Pick<RouteRequest, 'onControlSocket'>): void {
  if (!onControlSocket) throw new AppError('forbidden', 'Commands of features run only over the control socket')
}

export const commandRoutes = ({ commands }: Runtime): Route[] => [
  defineRoute({
    method: 'POST',
    path: '/api/commands',
    summary: 'Run a command of a feature over the control socket, one JSON object per line; the last one is `exit` or `error`',
    auth: 'operator',
    bodyBytesMax: BODY_BYTES_MAX,
    body: commandSchema,
    mediaType: 'application/x-ndjson',
    answers: { 200: { description: 'The output, and how the command ended', schema: commandFrameSchema } },
    handle(request) {
      requireControlSocket(request)
      return jsonLines<CommandFrame>(request.signal, (send, signal) => commands.run({ ...request.body, by: request.by, signal }, send))
    },
  }),
  defineRoute({
    method: 'POST',
    path: '/api/commands/:id/input',
    summary: 'Answer a question of a running command, or abort it',
    auth: 'operator',
    body: commandInputSchema,
    answers: { 200: { description: 'The command got it', schema: v.object({ received: v.literal(true) }) } },
    handle(request) {
      requireControlSocket(request)
      commands.receive(request.params.id ?? '', request.body)
      return { received: true }
    },
  }),
]
