/**
 * The tools a model works with procedures by: it can look at them, start them, and say how the step it works on went. It can
 * never let a run go on that waits for a person: `sop_approve` runs only when a person has agreed to that very call.
 */
import { defineFeature } from '@sluice/sdk'
import { sopAdvance } from './sop-advance.ts'
import { sopApprove } from './sop-approve.ts'
import { sopExecute } from './sop-execute.ts'
import { sopList } from './sop-list.ts'
import { sopStatus } from './sop-status.ts'

export default defineFeature({
  id: 'tool-sop',
  build: (host) => ({ tools: [sopList(host), sopExecute(host), sopStatus(host), sopApprove(host), sopAdvance(host)] }),
})
