/** A trigger as lists show it (§4.3): `webhook:/deploy`, `cron:0 9 * * *`, `manual`. */
import type { SopTrigger } from './definition.ts'

export function triggerText(trigger: SopTrigger): string {
  switch (trigger.type) {
    case 'manual':
      return 'manual'
    case 'webhook':
      return `webhook:${trigger.path}`
    case 'cron':
      return `cron:${trigger.expression}`
    case 'mqtt':
      return `mqtt:${trigger.topic}`
    case 'peripheral':
      return `peripheral:${trigger.board}/${trigger.signal}`
  }
}
