/** `/api/process`: stops the daemon, begins it again, and reads its configuration again, for commands on the control socket only. */
import { AppError, defineRoute, type Route, type RouteRequest } from '@sluice/sdk'
import * as v from 'valibot'
import type { AppParts } from '../server/app-parts.ts'
import type { ProcessControl } from '../server/process-control.ts'

const reloadSchema = v.object({
  sections: v.pipe(v.array(v.string()), v.description('The sections of the configuration that have changed')),
  rebuilt: v.pipe(v.array(v.string()), v.description('The features that were built again')),
})
/** The answer of `POST /api/process/reload`. */
export type ReloadAnswer = v.InferOutput<typeof reloadSchema>

function requireControlSocket({ onControlSocket }: Pick<RouteRequest, 'onControlSocket'>): void {
  if (!onControlSocket) throw new AppError('not_found', 'The process of the daemon is controlled only over the control socket')
}

async function reloaded(control: ProcessControl | undefined): Promise<ReloadAnswer> {
  if (!control) throw new AppError('unavailable', 'No daemon runs in this process, so no configuration is in force')
  const result = await control.reload()
  if ('sections' in result) return { sections: [...result.sections], rebuilt: [...result.rebuilt] }
  throw result.error instanceof AppError
    ? result.error
    : new AppError('unavailable', 'The configuration file could not be read; the log says why', { cause: result.error })
}

export const processRoutes = ({ runtime: { log }, processControl: control }: Pick<AppParts, 'runtime' | 'processControl'>): Route[] => [
  defineRoute({
    method: 'POST',
    path: '/api/process/stop',
    summary: 'Stop the daemon as SIGTERM does, over the control socket: it accepts nothing more and lets running turns end',
    auth: 'operator',
    answers: { 200: { description: 'The daemon stops after this answer', schema: v.object({ stopping: v.literal(true) }) } },
    handle(request) {
      requireControlSocket(request)
      if (!control?.stop) throw new AppError('conflict', 'Another program runs this daemon: stop that program')
      log.info('an operator stops the daemon', { by: request.by })
      control.stop()
      return { stopping: true as const }
    },
  }),
  defineRoute({
    method: 'POST',
    path: '/api/process/restart',
    summary: 'Stop the daemon and begin its program again as the same process, over the control socket. A wrong configuration refuses it',
    auth: 'operator',
    answers: { 200: { description: 'The daemon restarts after this answer', schema: v.object({ restarting: v.literal(true) }) } },
    async handle(request) {
      requireControlSocket(request)
      if (!control?.restart)
        throw new AppError('conflict', 'This daemon cannot begin its program again: restart it with the program or service that started it')
      // A program that begins with a configuration that is not valid would end.
      await reloaded(control)
      log.info('an operator restarts the daemon', { by: request.by })
      control.restart()
      return { restarting: true as const }
    },
  }),
  defineRoute({
    method: 'POST',
    path: '/api/process/reload',
    summary: 'Read the configuration file again, over the control socket. A file that is not valid changes nothing',
    auth: 'operator',
    answers: { 200: { description: 'What has changed', schema: reloadSchema } },
    handle(request) {
      requireControlSocket(request)
      return reloaded(control)
    },
  }),
]
