/** The texts that Sluice itself writes to people in chats. `[gateway.texts]` replaces any of them, for example to translate it. */

export interface GatewayTextRow {
  readonly text: string
  readonly when: string
  /** True for a notice that an operator may switch off. */
  readonly maySayNothing?: true
}

/**
 * The texts by their key: the English text, and when it is written. An empty replacement of one that may say nothing sends nothing. `{name}` is replaced by a value. A replacement may leave values out,
 * but has no others.
 */
export const GATEWAY_TEXTS = {
  unanswered: {
    text: 'This message could not be answered.',
    when: 'a message is given up, or a procedure that it started fails, is cancelled or expires, or skips it',
    maySayNothing: true,
  },
  run_not_completed: {
    text: 'The procedure {procedure}, which was started here, was not completed.',
    when: 'a procedure that a turn of the conversation started fails, is cancelled or expires',
    maySayNothing: true,
  },
  waiting: {
    text: 'The answer takes longer than usual. It comes as soon as possible; you do not need to write again.',
    when: 'a message has waited for `[delivery] notice_after_secs` because its turn failed and is tried again, or in a shared room behind messages of others',
    maySayNothing: true,
  },
  stopped: { text: 'Stopped.', when: '/stop or /new ended a turn, or /stop ended a message that waits to be tried again' },
  stopped_waiting: {
    text: 'Messages that waited and are not answered: {messages}.',
    when: '/stop ended messages whose turns had not begun',
  },
  nothing_to_stop: { text: 'Nothing is running.', when: '/stop found no turn' },
  new_conversation: {
    text: 'This is a new conversation. The earlier messages are kept, but no longer read.',
    when: '/new began a new conversation',
  },
  compacted: {
    text: 'The first {count} messages of this conversation are now a summary, which the model reads in their place.',
    when: '/compact replaced messages by a summary',
  },
  nothing_to_compact: { text: 'There is nothing to summarise yet.', when: '/compact found no messages' },
  compact_off: {
    text: 'No summary is written here, because summaries are switched off or no model is configured.',
    when: '/compact, while `[agent] summarize_history` is false or no model is configured',
  },
  not_compacted: { text: 'The model wrote no summary. The conversation is as before.', when: '/compact, and the model failed' },
  status_running: {
    text: 'Agent {agent} has been at work for {seconds} seconds. Messages that wait: {waiting}.',
    when: '/status, while a turn runs',
  },
  status_idle: { text: 'Agent {agent} is ready. Messages that wait: {waiting}.', when: '/status, while no turn runs' },
  help: { text: '{commands}', when: '/help; {commands} are the lines of all commands that the sender may use' },
  command_stop: { text: 'ends the running turn', when: '/help and the menu of a platform say what /stop does' },
  command_new: { text: 'begins a new conversation', when: '/help and the menu of a platform say what /new does' },
  command_compact: {
    text: 'replaces the earlier messages by a summary',
    when: '/help and the menu of a platform say what /compact does',
  },
  command_retry: { text: 'answers your last message again', when: '/help and the menu of a platform say what /retry does' },
  command_status: { text: 'tells what is running', when: '/help and the menu of a platform say what /status does' },
  command_usage: { text: 'tells what this conversation has used', when: '/help and the menu of a platform say what /usage does' },
  command_model: { text: 'tells or changes the model', when: '/help and the menu of a platform say what /model does' },
  command_who: { text: 'tells who you are to the agent', when: '/help and the menu of a platform say what /who does' },
  command_mute: { text: 'stops answers here, as in /mute 8h', when: '/help and the menu of a platform say what /mute does' },
  command_unmute: { text: 'starts answers again', when: '/help and the menu of a platform say what /unmute does' },
  command_link: { text: 'links this account with another one of yours', when: '/help and the menu of a platform say what /link does' },
  command_unlink: { text: 'separates this account from your others', when: '/help and the menu of a platform say what /unlink does' },
  command_help: { text: 'shows these commands', when: '/help and the menu of a platform say what /help does' },
  command_refused: { text: 'You may not use /{command}.', when: 'a sender uses a command that others may use' },
  not_your_turn: {
    text: 'This turn answers another person. That person or an operator can stop it.',
    when: '/stop of a sender whose turn does not run',
  },
  retried: { text: 'Your last message is answered again.', when: '/retry' },
  nothing_to_retry: { text: 'No earlier message of yours can be answered again.', when: '/retry found no message, or a turn runs' },
  usage: {
    text: 'Turns of this conversation in the last 24 hours: {turns}. Input tokens: {input}, output tokens: {output}, cost: {cost} US dollars.',
    when: '/usage',
  },
  model: { text: 'Agent {agent} uses {model}. Configured: {models}.', when: '/model' },
  model_set: { text: 'This conversation uses {model} from now on.', when: '/model with the name of a configured model, by an operator' },
  model_unknown: {
    text: 'No configured model is called {model}. Configured: {models}.',
    when: '/model with a name that is not configured',
  },
  who: { text: 'You are {sender} on {channel}, with the standing {standing}. Agent {agent} answers here.', when: '/who' },
  who_linked: { text: 'Linked with {accounts}.', when: '/who, for an account that is linked' },
  account_sender: { text: '{sender} on {channel}', when: 'another text names a linked account of a sender' },
  account_device: { text: 'a paired device', when: 'another text names a linked account of a device' },
  account_local: { text: 'the command line', when: 'another text names the linked account of the command line' },
  link_code: {
    text: 'Write `/link {code}` to me from your other account within {minutes} minutes. Both accounts then share memories and limits. Show the code to nobody: another person who types it gets your memories.',
    when: '/link',
  },
  linked: {
    text: 'This account is linked with {accounts}: they share memories and limits. If that was not you, write /unlink. If each may also do what the other may, write /link confirm on both.',
    when: '/link with a code, to both accounts',
  },
  link_confirmed: {
    text: 'Confirmed: {accounts} may do what this account may, as soon as they confirm it too. /unlink ends that.',
    when: '/link confirm',
  },
  link_confirmed_both: {
    text: 'Confirmed: {accounts} and this account may each do what the other may. /unlink ends that.',
    when: '/link confirm, after the other accounts have confirmed',
  },
  link_confirmed_by: {
    text: '{account} has confirmed {accounts}: each may do what the other may, as soon as both have confirmed. If that was not you, write /unlink.',
    when: '/link confirm, to the other accounts of the person',
  },
  link_confirm_which: {
    text: 'These accounts wait to be confirmed: {accounts}. Write /link confirm with the number or the name of one.',
    when: '/link confirm while several accounts wait, or with words that name none of them',
  },
  link_wrong: {
    text: 'This code is wrong, used or too old. Write /link on the other account for a new one.',
    when: '/link with a wrong code',
  },
  link_tries: { text: 'Too many wrong codes were typed. Try again in an hour.', when: '/link with a code, after too many wrong ones' },
  link_own: {
    text: 'This account made the code, which is void now. Type a new one on the other account.',
    when: '/link with the code of the same account',
  },
  link_taken: {
    text: 'Both accounts are linked already. Write /unlink on one of them first.',
    when: '/link between two accounts that are linked',
  },
  link_full: { text: 'No further account can be linked with this one.', when: '/link beyond the number of accounts' },
  link_in_room: {
    text: 'Accounts are linked in direct chats only. A code that was written here is void.',
    when: '/link or /unlink in a room',
  },
  link_unclear: { text: 'Write /link alone, with a code, or /link confirm.', when: '/link with other words than a code' },
  link_busy: { text: 'Too many codes were made. Try again in {minutes} minutes.', when: '/link after too many codes' },
  unlinked: { text: 'This account is no longer linked with {accounts}.', when: '/unlink, to both accounts' },
  not_linked: { text: 'This account is not linked.', when: '/unlink or /link confirm of an account that is not linked' },
  muted: { text: 'Messages here are not answered until the command /unmute.', when: '/mute' },
  muted_until: {
    text: 'Messages here are not answered until {time} UTC, or until the command /unmute.',
    when: '/mute with a time such as 30m, 8h or 2d',
  },
  mute_unclear: { text: 'Write /mute alone, or with a time: /mute 30m, /mute 8h or /mute 2d.', when: '/mute with other words than a time' },
  muted_by_operator: {
    text: 'An operator has muted this conversation. Only an operator changes or ends that.',
    when: '/mute or /unmute of another person, while the mute of an operator lasts',
  },
  unmuted: { text: 'Messages here are answered again.', when: '/unmute' },
  limit_turns: {
    text: 'You have reached the limit for messages: {limit} an hour. You can write again at {time} UTC.',
    when: 'a sender reached turns_per_hour of [limits]',
  },
  limit_cost: {
    text: 'You have reached the limit of {limit} USD a day. You can write again at {time} UTC.',
    when: 'a sender reached usd_per_day of [limits]',
  },
  limit_waiting: {
    text: 'Too many of your messages are waiting, so that this one is not answered. Write again when you have an answer.',
    when: 'the waiting messages of a sender reached turns_waiting or waiting_mb of [limits]',
  },
  limit_commands: {
    text: 'Too many commands were written. Commands are answered again at {time} UTC.',
    when: 'a sender, or all senders together that only * admits, wrote too many commands in ten minutes',
  },
  guests_limit_turns: {
    text: 'Guests have together reached the limit for messages: {limit} an hour. You can write again at {time} UTC.',
    when: 'the senders that only * admits reached turns_per_hour together',
  },
  guests_limit_cost: {
    text: 'Guests have together reached the limit of {limit} USD a day. You can write again at {time} UTC.',
    when: 'the senders that only * admits reached usd_per_day together',
  },
  room_limit_turns: {
    text: 'This room has reached its limit for messages: {limit} an hour. You can write again at {time} UTC.',
    when: 'a room reached turns_per_hour of its rule',
  },
  room_limit_cost: {
    text: 'This room has reached its limit of {limit} USD a day. You can write again at {time} UTC.',
    when: 'a room reached usd_per_day of its rule',
  },
  approve_with: { text: 'Reply with {keywords} to approve.', when: 'an approval has one keyword that approves' },
  approve_with_one_of: { text: 'Reply with one of: {keywords} to approve.', when: 'an approval has several keywords that approve' },
  reject_with: { text: 'Reply with {keyword} <your feedback> to reject.', when: 'an approval has one keyword that rejects' },
  reject_with_one_of: {
    text: 'Reply with {keyword} <your feedback> to reject (or {others}).',
    when: 'an approval has several keywords that reject',
  },
  button_approve: { text: 'Approve', when: 'the label of the button that approves' },
  button_reject: { text: 'Reject', when: 'the label of the button that rejects' },
  approved: { text: 'Approved by {by}', when: 'somebody approved' },
  rejected: { text: 'Rejected by {by}', when: 'somebody rejected' },
  cancelled: { text: 'Cancelled by {by}', when: 'somebody cancelled an approval' },
  withdrawn: {
    text: 'Withdrawn: the turn or run that asked has ended, and an answer would start nothing',
    when: 'the turn or run of an approval ended',
  },
  expired: { text: 'Expired: no answer in time', when: 'nobody answered an approval in time' },
  pending: { text: 'Still waiting for an answer', when: 'an approval waits' },
  open_question: {
    text: 'A question waits for your answer: “{question}” Reply with `{approve}` or `{reject}`. Your message is answered after that.',
    when: 'a sender writes something else while a question waits, once for each question',
    maySayNothing: true,
  },
  open_question_of_others: {
    text: 'A question waits for your answer: “{question}” Reply with `{approve}` or `{reject}`.',
    when: "a person who may decide the question of another's turn writes something else, once for each question",
    maySayNothing: true,
  },
  open_questions: {
    text: '{count} questions wait for your answer. Reply to the message of the one that you mean.',
    when: 'a sender answers with a keyword alone while several questions wait',
    maySayNothing: true,
  },
  already_decided: { text: 'Already {decision}', when: 'a sender answers an approval that was decided before' },
  not_your_decision: {
    text: 'You cannot decide this. An operator decides it.',
    when: 'a sender answers an approval that others decide',
  },
  not_your_call: {
    text: 'You cannot decide this. The person who asked for it, or an operator, decides it.',
    when: "a sender answers an approval of another person's call",
  },
  tool_wants: { text: '{tool} wants to run', when: 'the title of an approval for a tool call of the main agent' },
  tool_of_agent_wants: { text: '{tool} of agent {agent} wants to run', when: 'the title of an approval for a tool call of another agent' },
  tool_for_person: { text: '{title} for {person}', when: 'the title of an approval for a tool call in a room that its people share' },
  tool_of_step_wants: {
    text: '{procedure}: step {step} of {steps}: {title}',
    when: 'the title of an approval for a tool call of a procedure',
  },
  untrusted_reason: {
    text: 'You are asked because the conversation contains untrusted text ({source}), which may have led to this call.',
    when: 'a tool call is asked about because of untrusted text',
  },
  call_continues: { text: '(This call goes on in the next message.)', when: 'a tool call is longer than one message' },
  approval_topic: { text: 'Approval: {name}', when: 'the title of the thread about an approval' },
  not_attached: { text: '(not attached: {reason})', when: 'a file of a reply cannot be sent' },
  not_attached_empty: { text: "(not attached: '{path}' is empty)", when: 'a file of a reply is empty' },
  not_attached_many: {
    text: '(not attached: {count} of the files)',
    when: 'files of a reply cannot be sent, and the reasons have no room',
  },
  nothing_open: { text: 'This answers nothing that is still open.', when: 'a sender presses a button or answers a question that is gone' },
} as const satisfies Readonly<Record<string, GatewayTextRow>>

export type GatewayText = keyof typeof GATEWAY_TEXTS

/** The texts in force: replacements of `[gateway.texts]`, by their key. */
export type GatewayTexts = Readonly<Partial<Record<GatewayText, string | undefined>>>

const VALUE = /\{([a-z_]+)\}/g

/** Returns the names of the values in a text, such as `limit` in `{limit}`. */
export const valuesIn = (text: string): readonly string[] => [...text.matchAll(VALUE)].map(([, name = '']) => name)

/** Returns the text of a key with its values. A `{name}` without a value stays as it is. */
export const gatewayText = (key: GatewayText, texts: GatewayTexts, values: Readonly<Record<string, string | number>> = {}): string =>
  (texts[key] ?? GATEWAY_TEXTS[key].text).replace(VALUE, (whole, name: string) => String(values[name] ?? whole))
