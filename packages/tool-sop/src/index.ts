/**
 * Lets a model list procedures, start them, look at runs and report on its own step. A model can never resume a run that
 * waits for a person: `sop_approve` runs only after a person has approved that very call.
 */
import { defineFeature } from '@sluice/sdk'
import { sopAdvance, sopApprove, sopExecute, sopList, sopStatus } from './sop-tools.ts'

export default defineFeature({
  id: 'tool-sop',
  build: (host) => ({ tools: [sopList(host), sopExecute(host), sopStatus(host), sopApprove(host), sopAdvance(host)] }),
})
