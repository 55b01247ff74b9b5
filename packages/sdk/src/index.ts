/** The contract between Sluice and its features: ports, the catalogue, errors and security primitives. Nothing here does I/O. */

export type { Abilities } from './channel/abilities.ts'
export { isAllowed, normaliseE164 } from './channel/allow.ts'
export { ATTACHMENT_PATH, ATTACHMENTS, type Attachment, namedAttachments } from './channel/attachments.ts'
export type {
  Address,
  Button,
  Channel,
  ChannelHealth,
  Deliver,
  DeliveryReport,
  Inbound,
  Media,
  Outbound,
  Raw,
  ReplyWindow,
  Sample,
  SampleRequest,
  Sent,
  Verified,
  Webhook,
} from './channel/channel.ts'
export type { ChannelLink, LinkStatus, QrCode } from './channel/channel-link.ts'
export {
  CHAT_COMMANDS,
  type ChatCommandName,
  type ChatCommandRow,
  chatCommandIn,
  type OfferedCommand,
  type WrittenCommand,
} from './channel/chat-commands.ts'
export type { Companion, CompanionRequest, StartCompanion } from './channel/companion.ts'
export { type AnswerFiles, answerFilesIn, fileNote, type UsedFiles, usedFilesIn } from './channel/file-notes.ts'
export type { FileCaller, FileClaim, OwnedPlace, ReceivedFile } from './channel/file-owner.ts'
export {
  attachmentPath,
  fileClaim,
  fileOwner,
  fileOwnerOfSession,
  isFormerAttachment,
  isSessionFolder,
  ownerFolder,
  resultsFolder,
  resultsKey,
} from './channel/file-owner.ts'
export {
  type Addressed,
  type Author,
  type Forwarded,
  forwardedPart,
  hasWordsOfOthers,
  isOfOthers,
  location,
  namePart,
  overheardPart,
  poll,
  QUOTED_CHARS_MAX,
  type Quoted,
  quotedPart,
  THING_KINDS,
  type Thing,
  type ThingKind,
  thing,
  thingLine,
  thingsPart,
  unknownThing,
  wordsOf,
} from './channel/inbound-parts.ts'
export type { Gap, ListenContext, ListenCursors, ListenReport } from './channel/listen.ts'
export type { Markup, StyledText, StyleKind, TextStyle } from './channel/markup.ts'
export type { MarkedFile, NewReply, ReplyExtras, ReplyFile } from './channel/reply.ts'
export { markedFiles, replaceFileMarkers, replyLane } from './channel/reply.ts'
export {
  adviceOnUnreadable,
  parseRoomRule,
  RESPONDS,
  ROOM_KEYS,
  ROOM_SESSIONS,
  ROOMS,
  type RoomRule,
  roomKey,
  roomRuleSchema,
} from './channel/room-rule.ts'
export type { CatalogueId, CommandHelp, FeatureId, FeatureKind, OwnRow, Profile, Row } from './feature/catalogue.ts'
export { buildHint, CATALOGUE, howToGet, isInProfile, ROWS, rowOf, rowOfFeature } from './feature/catalogue.ts'
export type { Command, CommandContext } from './feature/command.ts'
export type { Feature, Finding, LinkHealth, Parts, SectionProblem } from './feature/feature.ts'
export { defineFeature, sectionsOfFeature } from './feature/feature.ts'
export { GATEWAY_TEXTS, type GatewayText, type GatewayTextRow, type GatewayTexts, gatewayText, valuesIn } from './feature/gateway-texts.ts'
export type { DeviceHolder, Hardware, HardwareBoard, HeldPin, RobotStatus } from './feature/hardware.ts'
export type {
  Addresses,
  AddressRule,
  ChipInfo,
  ChipProbe,
  Clock,
  ConfigAddition,
  DeviceRecord,
  FollowWaiting,
  Host,
  IssuedToken,
  NativeGpio,
  PairedDevice,
  Pairing,
  PasskeySignIn,
  PinUse,
  PublicRequest,
  RecalledMemory,
  ResolvedAddress,
  SecretStore,
  Services,
  SharedGpio,
  Speak,
  SpokenFormat,
  StartTurn,
  Transcribe,
  UnansweredTurn,
  WaitingWork,
} from './feature/host.ts'
export { isUnloaded, laterFeature, loadFeatures, type SectionDefaults, unloadedDefaults } from './feature/later-feature.ts'
export { checkFeatures, checkParts } from './feature/name-clashes.ts'
export type { FeatureSocket, SocketListener, SocketRequest, SocketRoute } from './feature/socket.ts'
export type {
  StoreBackend,
  StoreBackendOptions,
  StoreMove,
  StoreMoveOptions,
  StoreMoveProgress,
  StoreRecovered,
  StoreSignOptions,
  StoreToolOptions,
} from './feature/store-backend.ts'
export { actionRecord } from './observe/action-record.ts'
export { AUDIT_ROOT, auditHash } from './observe/audit-hash.ts'
export type { EventEnvelope, Events, EventType, FinishReason, NoticeKind, OperatorNotice, SluiceEvent, Usage } from './observe/events.ts'
export { eventMembers, eventSchema, finishReasonSchema, NOTICE_KINDS } from './observe/events.ts'
export type { Backlog, Connection, Observation, Observer, Outcome, Span, Vitals } from './observe/observer.ts'
export type {
  AdmissionRequest,
  AdmissionStore,
  CountedLimits,
  Exceeded,
  HeldBack,
  LimitCause,
  LimitName,
  Limits,
  LoopSeries,
  LoopState,
  NoticeCause,
  OwnedAdmissionStore,
} from './store/admission-store.ts'
export type {
  Approval,
  ApprovalFilter,
  ApprovalGate,
  ApprovalKey,
  ApprovalPrompt,
  ApprovalState,
  ApprovalStore,
  Decision,
  NewApproval,
  OwnedApprovalStore,
} from './store/approval-store.ts'
export type { SharedState } from './store/cluster-state.ts'
export type { ClusterMember, ClusterNode, ClusterRole, ClusterStore, NodeState, ShardClaim } from './store/cluster-store.ts'
export { CLOCK_OFFSET_MS_MAX, CLUSTER_ROLES } from './store/cluster-store.ts'
export type { BeginningTurn, ClusterNotice, ClusterNotices, ClusterTurns, UnfinishedTurn } from './store/cluster-turns.ts'
export type { Counters, Lockout, LockoutOptions, RateLimit, RateLimitOptions } from './store/counters.ts'
export type {
  Arrival,
  DeliveryFilter,
  Discard,
  InboxEntry,
  InboxRow,
  InboxState,
  InboxStore,
  MessageChange,
  MessageJoin,
  MessageKind,
  MessageNews,
  OutboxRow,
  OutboxState,
  OutboxStore,
  OwnedInboxStore,
  OwnedOutboxStore,
  RefusedMessage,
  RetriedAttempt,
  SessionMessage,
  SpentMessage,
  StartedMessage,
  StartedReply,
  Waiting,
  WaitingMessage,
  WaitingPage,
  WaitingSince,
} from './store/delivery-store.ts'
export { INTERRUPTED_SEND } from './store/delivery-store.ts'
export type { EventFollower, EventLog, LoggedEvent } from './store/event-log.ts'
export type { Claim, IdempotencyKey, IdempotencyStore } from './store/idempotency.ts'
export { type FolderMark, type NodeFolder, type NodeProgram, type NodeReport, parseNodeReport } from './store/node-report.ts'
export type { OneTimeKeyOptions, OneTimeKeys, OneTimeKeysOf } from './store/one-time-keys.ts'
export {
  changeLane,
  commandLane,
  runsOnShard,
  sessionOfLane,
  shardOf,
  shardOfConversation,
  shardOfSession,
  shardOfTurn,
} from './store/ownership.ts'
export type { DeletedRows, Retention, StoreUsage } from './store/retention.ts'
export type { DatabaseRecord, SeenDatabase } from './store/seen-database.ts'
export type { ConfigVersion, SharedConfig } from './store/shared-config.ts'
export { type RowSigner, type RowSurvey, refusedRows, type SignedRows, type UnverifiedRow } from './store/signed-rows.ts'
export type {
  FireOptions,
  SopDispatch,
  SopEvent,
  SopGate,
  SopMode,
  SopPriority,
  SopRun,
  SopRunStatus,
  SopStep,
  SopStepResult,
  SopSummary,
  Sops,
  TriggerKind,
  TriggerWebhook,
} from './store/sop.ts'
export { maySeeRun, mayStartByName, ownerOfRun, SOP_ENDED, SOP_REPLAYABLE, wasStartedIn } from './store/sop.ts'
export { judgeStart, SOP_RANKS, type SopLimits, type SopLoad, type StartVerdict, takenLimit } from './store/sop-limits.ts'
export type { AuditKind, AuditRow, NewAudit, OwnedSopStore, SopStart, SopStore, WaitingSopRun } from './store/sop-store.ts'
export type {
  Conversation,
  CostSpan,
  DeviceRow,
  DeviceStore,
  Erased,
  KeyValue,
  ListedTurn,
  Memories,
  MemoryEntry,
  MemoryStore,
  NewDevice,
  OwnedStore,
  OwnedTurnStore,
  PeriodCost,
  QueuedTurn,
  ServerCheck,
  SessionRow,
  SessionStore,
  SessionSummary,
  Store,
  StoreChange,
  StoreHealth,
  StoreProblem,
  TurnEnd,
  TurnError,
  TurnFilter,
  TurnMessages,
  TurnRow,
  TurnStatus,
  TurnStep,
  TurnStore,
  WorkStore,
} from './store/store.ts'
export { SHARED_MEMORIES, sessionKeys, UNOWNED_MEMORIES } from './store/store.ts'
export { isAllowedDomain } from './tool/allowed-domain.ts'
export type { Answerer, ApprovalRequest, Approvals, AskedTarget, NewDecision } from './tool/approvals.ts'
export { APPROVAL_MESSAGE_CHARS_MAX } from './tool/approvals.ts'
export type {
  LanguageModel,
  LoadOptions,
  MediaKind,
  ModelCallOptions,
  ModelFinishReason,
  ModelGenerateResult,
  ModelMessage,
  ModelPrompt,
  ModelStreamPart,
  ModelStreamResult,
  ModelTool,
  ModelUsage,
  OfferedModel,
  Provider,
  ProviderSettings,
  UsualEndpoint,
} from './tool/model.ts'
export { MEDIA_KINDS, promptCacheKey, promptCacheKeyIn } from './tool/model.ts'
export type {
  ProcessCommand,
  ProcessPipes,
  RunBare,
  Sandbox,
  SandboxPolicy,
  SandboxProbe,
  Spawn,
  SpawnRequest,
  SpawnResult,
  WrappedCommand,
} from './tool/sandbox.ts'
export { unconfinedNote } from './tool/sandbox.ts'
export type { CallingAgent, Decider, Risk, Tool, ToolContext, ToolReport } from './tool/tool.ts'
export { DECIDERS, defineTool, isForOperators } from './tool/tool.ts'
export type {
  AgentWorkspace,
  FileLimit,
  FileShare,
  FileViewer,
  KeptBytes,
  NewAttachment,
  OpenFile,
  Workspace,
  WorkspaceEntry,
} from './tool/workspace.ts'
export type { ClientId } from './values/client-id.ts'
export { actorName, withDeviceNames } from './values/device-name.ts'
export type { ErrorCode, ErrorOptions } from './values/errors.ts'
export { AppError, ERRORS, errorText } from './values/errors.ts'
export { isFresh } from './values/fresh.ts'
export { withFullStop } from './values/full-stop.ts'
export type { Bytes, HmacAlgorithm } from './values/hmac.ts'
export { equalDigests, equalTexts, hmac, hmacSha256, sha256Hex, verifyHmac } from './values/hmac.ts'
export type { Lease, LeaseName, LeaseStore, ShardRange } from './values/lease.ts'
export { ALL_SHARDS, channelLease, checkHeld, isLeaseLost, leaseLost, SHARDS, shardsLease, shardsOf } from './values/lease.ts'
export type { LogFields, Logger } from './values/logger.ts'
export { type Policy, type PolicyLevel, SHELL_MODES, type ShellMode } from './values/policy.ts'
export { oneLine, printable, printableLine } from './values/printable.ts'
export {
  type ApiCall,
  answerOf,
  type BrowserSession,
  defineRoute,
  type NewBrowserSession,
  ROLES,
  type Role,
  type Route,
  type RouteAuth,
  type RouteRequest,
} from './values/route.ts'
export { Secret, secretMask, secretValues, withoutSecrets } from './values/secret.ts'
export type { ConfigSchema, KeyMetadata, Refined, Section } from './values/section.ts'
export { fromEnv, headerSecret, httpUrl, operatorCommand, secretText, whole } from './values/section.ts'
export type { ChatSession, RoomPlace } from './values/session-key.ts'
export {
  AGENT_NAME,
  agentKey,
  agentOfSession,
  channelOwner,
  chatSessionKey,
  escapedParts,
  MAIN_AGENT,
  memoryOwner,
  parseAgentKey,
  parseChatSession,
  parseRoomId,
  parseSenderKey,
  policyHeader,
  roomId,
  roomOwner,
  senderKey,
  sessionOfWriter,
  sharedRoom,
} from './values/session-key.ts'
export { isAtLeast, lowestStanding, STANDINGS, type Standing } from './values/standing.ts'
export type { Trace, TraceParent, WithinTrace } from './values/trace.ts'
export { formatTraceContext, formatTraceparent, parseTraceContext, parseTraceparent } from './values/trace.ts'
export { typedText } from './values/typed-text.ts'
export {
  frameSource,
  frameUntrusted,
  outsideFrames,
  sourceOfMessage,
  UNTRUSTED_RULE,
  untrustedSource,
  visibleText,
  withoutFrames,
} from './values/untrusted.ts'
export { sameOrigin } from './values/url-host.ts'
export { answerProvenContact, answerUnprovenContact, type Contact, HANDSHAKES, type HandshakeName } from './webhook/first-contact.ts'
export { type GivenHeaders, type RequestParts, rawRequest } from './webhook/raw-request.ts'
export { type Proof, type RequestToSign, type SignedRequest, signProof, verifyProof } from './webhook/webhook-proof.ts'
export {
  authKey,
  bodyHmac,
  type HmacScheme,
  handshakesOf,
  isTestEvent,
  SENDER_SCHEMES,
  type SenderName,
  type WebhookAuth,
  type WebhookScheme,
} from './webhook/webhook-scheme.ts'
