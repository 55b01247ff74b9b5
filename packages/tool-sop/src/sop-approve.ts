/** `sop_approve`: passes a person's agreement on to a run that waits for one. A model never agrees in a person's place. */
import { AppError, defineTool, type Tool } from '@sluice/sdk'
import * as v from 'valibot'
import { runText } from './run-text.ts'
import { type SopHost, sopsOf } from './sops-of.ts'

export const sopApprove = (host: SopHost): Tool =>
  defineTool({
    name: 'sop_approve',
    description: 'Lets a run that waits for a person go on, once a person has agreed to this very call; without one it is refused.',
    risk: 'execute',
    alwaysAsks: true,
    input: v.object({ run_id: v.pipe(v.string(), v.minLength(1), v.maxLength(200), v.description('The run that waits')) }),
    async run({ run_id }, { approvedBy }) {
      if (approvedBy === undefined)
        throw new AppError('forbidden', 'Only a person can let a run go on, and nobody has agreed to this call.')
      return `Approved by ${approvedBy}.\n${runText(await sopsOf(host).approve(run_id, approvedBy))}`
    },
  })
