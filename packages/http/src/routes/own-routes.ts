/** The resources of the API, in the order in which they match. */

import type { Route } from '@sluice/sdk'
import type { AppParts } from '../server/app-parts.ts'
import { approvalRoutes } from './approvals.ts'
import { attachmentRoute } from './attachments.ts'
import { backupsRoute } from './backups.ts'
import { callRoutes } from './calls.ts'
import { channelLinkRoutes } from './channel-links.ts'
import { channelRoutes } from './channels.ts'
import { clusterRoutes } from './cluster.ts'
import { commandRoutes } from './commands.ts'
import { configRoutes } from './config.ts'
import { costsRoute } from './costs.ts'
import { deliveryRoutes } from './deliveries.ts'
import { deviceRoutes } from './devices.ts'
import { hardwareRoutes } from './hardware.ts'
import { historyRoute } from './history.ts'
import { limitRoutes } from './limits.ts'
import { logRoutes } from './logs.ts'
import { memoryRoutes } from './memories.ts'
import { modelRoutes } from './models.ts'
import { noticeRoutes } from './notices.ts'
import { peopleRoutes } from './people.ts'
import { processRoutes } from './process.ts'
import { roomRoutes } from './rooms.ts'
import { sessionRoutes } from './sessions.ts'
import { sopRoutes } from './sops.ts'
import { statusRoutes } from './status.ts'
import { streamedTurnRoutes } from './streamed-turn.ts'
import { turnRoutes } from './turns.ts'

/** The parts that these routes need. */
export type ApiParts = Pick<AppParts, 'runtime' | 'snapshot' | 'auth' | 'url' | 'processControl'>

export function ownRoutes(parts: ApiParts): Route[] {
  const { runtime, snapshot, auth } = parts
  return [
    ...statusRoutes(parts),
    ...modelRoutes(runtime, snapshot),
    ...sessionRoutes(runtime),
    ...memoryRoutes(runtime),
    ...limitRoutes(runtime),
    ...roomRoutes(runtime),
    ...peopleRoutes(runtime),
    ...noticeRoutes(runtime),
    ...clusterRoutes(runtime),
    ...turnRoutes(runtime),
    ...streamedTurnRoutes(parts),
    attachmentRoute(runtime, snapshot),
    ...callRoutes(parts),
    ...channelLinkRoutes(runtime),
    ...commandRoutes(runtime),
    ...deliveryRoutes(runtime),
    ...approvalRoutes(runtime),
    ...sopRoutes(runtime),
    backupsRoute(runtime),
    costsRoute(runtime),
    historyRoute(runtime),
    ...channelRoutes(runtime, snapshot),
    ...hardwareRoutes(runtime, snapshot),
    ...configRoutes(runtime),
    ...logRoutes(runtime),
    ...processRoutes(parts),
    ...deviceRoutes(runtime, snapshot, auth),
  ]
}
