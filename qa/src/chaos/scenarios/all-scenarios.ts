/** All scenarios at full size, for runs by hand. The tests play smaller ones. */
import { fullInbox } from './full-inbox.ts'
import { platformOutage } from './platform-outage.ts'
import { poison } from './poison.ts'
import { recoveryStorm } from './recovery-storm.ts'
import type { Scenario } from './scenario.ts'
import { sigtermUnderLoad } from './sigterm-under-load.ts'
import { slowModel } from './slow-model.ts'
import { slowStop } from './slow-stop.ts'
import { suspend } from './suspend.ts'

export const SCENARIOS: Readonly<Record<string, Scenario>> = {
  'SIGTERM under load': sigtermUnderLoad,
  'SIGTERM while the model hangs': slowStop,
  'poison message': poison,
  'recovery storm': recoveryStorm({ messages: 2000 }),
  'full inbox': fullInbox,
  'the platforms are away': platformOutage({ lives: 5, restMs: 5000 }),
  'the machine is suspended for 35 s': suspend({ ms: 35_000 }),
  'the model answers after 120 s': slowModel({ perSecond: 60, seconds: 125, answerMs: 120_000 }),
  'the model never answers': slowModel({ perSecond: 200, seconds: 10, answerMs: Number.POSITIVE_INFINITY }),
}
