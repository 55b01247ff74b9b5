/** Answers to approvals are worked on apart from turns: the one that waits for an answer would hold it up. */
import type { ApprovalKey, Inbound } from '@sluice/sdk'

/** What the session of every such message begins with; no session of a channel does. */
export const ANSWER_LANE = 'approval:'

/** The lane of an answer, in which its approval is named; of a press, whose button names it, the message that was pressed. */
export function answerLane(channel: string, key: ApprovalKey | undefined, { pressed }: Inbound): string {
  const parts = key ? [key.runId, key.stepId] : [pressed?.message ?? '']
  return `${ANSWER_LANE}${channel}/${parts.map((part) => encodeURIComponent(part.toWellFormed())).join('/')}`
}

export const isAnswerLane = (lane: string): boolean => lane.startsWith(ANSWER_LANE)

/** Undefined for the lane of a press. */
export function keyOfLane(lane: string): ApprovalKey | undefined {
  const [, runId, stepId] = lane.split('/')
  return runId === undefined || stepId === undefined ? undefined : { runId: decodeURIComponent(runId), stepId: decodeURIComponent(stepId) }
}
