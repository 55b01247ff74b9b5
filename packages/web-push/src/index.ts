/** Notifications in browsers about approvals that wait and messages that were given up (docs/web-push.md). */
import { defineFeature } from '@sluice/sdk'
import { pushCommands } from './commands.ts'
import { webPushSection } from './config.ts'
import { Outgoing } from './outgoing.ts'
import { pushRoutes } from './routes.ts'
import { Subscriptions } from './subscriptions.ts'
import { readVapidKey, type VapidKey } from './vapid.ts'
import { approvalNotification, DeadLetters } from './waiting-work.ts'

export default defineFeature({
  id: 'web-push',
  section: webPushSection,
  build(host, { enabled, contact }) {
    const subscriptions = new Subscriptions(host.secrets, () => host.service('pairing'))
    const commands = pushCommands(host, subscriptions)
    if (!enabled || contact === undefined) return { commands, disabledReason: '`enabled` is false' }
    let reading: Promise<VapidKey> | undefined
    const key = (): Promise<VapidKey> => (reading ??= readVapidKey(host.secrets))
    const outgoing = new Outgoing(host, { host, contact, key }, subscriptions)
    const deadLetters = new DeadLetters({ clock: host.clock, log: host.log, notify: (notification) => outgoing.notify(notification) })
    let unfollow: (() => void) | undefined
    return {
      commands,
      routes: pushRoutes({ host, subscriptions, outgoing, key }),
      async register() {
        await key()
        unfollow = host.service('followWaiting')?.((waiting) => {
          if (waiting.kind === 'dead_letter') deadLetters.add(waiting)
          else
            outgoing
              .notify(approvalNotification(waiting, host.clock.nowMs()))
              .catch((error: unknown) => host.log.error('an approval was not notified', { error }))
        })
      },
      async drain() {
        unfollow?.()
      },
      async close() {
        unfollow?.()
        await Promise.all([deadLetters.close(), outgoing.close()])
      },
    }
  },
})
