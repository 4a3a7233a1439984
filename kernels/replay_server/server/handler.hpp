// Answers requests, whatever brought them: a whole frame in, a reply out, or a promise of one. Not
// for several threads at once. It knows no socket, so it serves a process by itself, too.

#ifndef ACCEL_RL_REPLAY_SERVER_HANDLER_HPP
#define ACCEL_RL_REPLAY_SERVER_HANDLER_HPP

#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "../core/mailbox.hpp"
#include "../core/table.hpp"
#include "../protocol/parser.hpp"
#include "../protocol/writer.hpp"
#include "latencies.hpp"
#include "log.hpp"
#include "service_time.hpp"
#include "sessions.hpp"
#include "settings.hpp"
#include "snapshots.hpp"

namespace accel_rl::replay {

class Transport;

struct Peer;
struct Waiting;
// FIFO: what came later does not overtake, or a large request would wait for ever.
using WaitingQueue = std::list<Waiting>;

// One connection, as the handler sees it. Its transport owns it, and calls disconnect() at its end.
struct Peer {
  enum class State : uint8_t { fresh, challenged, ready, closed };

  State state = State::fresh;
  Transport *transport = nullptr;  // that it came by; null: a socket of the event loop
  Session *session = nullptr;
  uint8_t transcript[transcript_bytes] = {};   // server's nonce, client's nonce, token to resume
  uint32_t waiting = 0;                        // requests that wait
  std::vector<WaitingQueue::iterator> parked;  // those of them that wait for the limiter
  uint32_t sampling = 0;                       // samples that are drawn in steps
  uint64_t served_us = 0;                      // see ServiceTime
};

// A request that waits for the limiter.
struct Waiting {
  Peer *peer;
  uint64_t deadline_ms;
  Header header;
  SampleRequest sample;  // of a SAMPLE
  FrameBuffer frame;     // of a PUSH
  uint64_t began_us;     // when it came
  // Where it is found.
  WaitingQueue *queue = nullptr;
  std::multimap<uint64_t, WaitingQueue::iterator>::iterator deadline;
};

enum class Outcome : uint8_t {
  reply,            // to be sent
  reply_and_close,  // to be sent, then the connection ends
  waits,            // one will be delivered
  close,            // the connection ends
};

// Why a server that is drained refuses a request.
constexpr const char *drained = "the server is drained, and ends";

class Handler {
 public:
  using Deliver = std::function<void(Peer &, FrameBuffer &)>;

  explicit Handler(Settings settings);

  // Begin with what the files of the snapshot path hold, and begin a log where there is to be one;
  // before anything else, or it is out_of_order. `notes` gets what was found wrong and left out.
  Status recover(std::vector<std::string> *notes, std::string *why);

  // The most bytes that a frame of this peer may have.
  uint32_t most_bytes(const Peer &peer) const;
  // Reject bytes that are no frame, for the reason `status`.
  Outcome refuse(const Header &header, Status status, FrameBuffer *reply);
  Outcome handle(Peer &peer, const Frame &frame, FrameBuffer *reply, uint64_t now_ms);
  // Retry waiting requests, answer those past their deadline, and go on with a sample.
  void serve_waiting(uint64_t now_ms, const Deliver &deliver);
  // True if serve_waiting() has work now; deadline_ms() says when it will at the latest (0: never).
  bool pending() const {
    return changed_ || log_is_long() || snapshots_.writing() || !samplings_.empty();
  }
  uint64_t deadline_ms() const;
  // Whether serve_waiting() has to see when the disk is done.
  bool awaits_disk() const { return snapshots_.active() || !for_log_.empty(); }
  void disconnect(Peer &peer, uint64_t now_ms);
  // Forget sessions without a connection, and tables and names that nobody has used.
  void expire_unused(uint64_t now_ms);

  // Begin a snapshot unless one is being written; snapshots() tells how it went.
  Status begin_snapshot(std::string *why);
  const Snapshots &snapshots() const { return snapshots_; }
  Log &log() { return log_; }

  ServiceTime &service_time() { return service_time_; }
  Statistics &counters() { return statistics_; }
  const Latencies &latencies() const { return latencies_; }
  SlowRequests &slow() { return slow_; }
  const Statistics &statistics();  // counters, and what is there now
  // By number; null: it was removed, and no other table gets its number.
  const std::vector<std::unique_ptr<Table>> &tables() const { return tables_; }
  // True once a client has asked for it: then no session begins, and nothing is pushed.
  bool draining() const { return draining_; }

 private:
  // A sample that takes longer than others should wait is drawn in steps.
  struct Sampling {
    Peer *peer = nullptr;
    Header header;
    SampleRequest request;
    bool begun = false;
    uint64_t began_us = 0;  // when it came
    FrameBuffer reply;
    std::vector<std::byte *> columns;  // in the reply
    SampleOut out;
    SampleRun run;
  };
  // A request for a table that waits until the disk has it.
  struct Opening {
    Peer *peer;
    Header header;
    size_t table;
    uint64_t records;  // of the log
  };
  struct Queues {
    WaitingQueue pushes, samples;
  };

  Outcome fail(const Header &header, Status status, const std::string &why, FrameBuffer *reply);
  Outcome fail_and_close(const Header &header, Status status, const std::string &why,
                         FrameBuffer *reply);
  Outcome hello(Peer &peer, const Frame &frame, FrameBuffer *reply);
  Outcome auth(Peer &peer, const Frame &frame, FrameBuffer *reply);
  Outcome welcome(Peer &peer, const Header &header, const uint8_t *mac, FrameBuffer *reply);
  Outcome bye(Peer &peer, const Frame &frame, FrameBuffer *reply);
  Outcome open_table(Peer &peer, const Frame &frame, FrameBuffer *reply, uint64_t now_ms);
  void serve_openings(const Deliver &deliver);
  Outcome push(Peer &peer, const Frame &frame, FrameBuffer *reply, uint64_t now_ms);
  Outcome sample(Peer &peer, const Frame &frame, FrameBuffer *reply, uint64_t now_ms);
  Outcome update(Peer &peer, const Frame &frame, FrameBuffer *reply);
  Outcome stats(const Frame &frame, FrameBuffer *reply);
  Outcome publish(Peer &peer, const Frame &frame, FrameBuffer *reply, uint64_t now_ms);
  Outcome fetch(const Frame &frame, FrameBuffer *reply, uint64_t now_ms);
  Outcome snapshot(Peer &peer, const Frame &frame, FrameBuffer *reply);
  Outcome ping(const Frame &frame, FrameBuffer *reply);
  Outcome remove(Peer &peer, const Frame &frame, FrameBuffer *reply);
  Outcome next_table(const Frame &frame, FrameBuffer *reply);
  Outcome drain(const Frame &frame, FrameBuffer *reply);
  Outcome describe(size_t number, const Header &header, FrameBuffer *reply);
  size_t find_table(const std::string &name) const;
  void remove_table(size_t number);
  void remove_message(const std::string &name);
  void remove_unused(bool message, const std::string &name);
  Outcome dispatch(Peer &peer, const Frame &frame, FrameBuffer *reply, uint64_t now_ms);

  void count_time(const Header &header, uint64_t came_us, uint64_t began_us);
  Table *table_of(const Header &header);
  // Answer a repeated request from the recorded replies; false if it is new.
  bool replay_reply(const Peer &peer, const Header &header, FrameBuffer *reply, Outcome *outcome);
  // A change is done: remember its reply, and write it to the log.
  void record(Peer &peer, const Frame &frame, FrameBuffer *reply);
  bool log_is_long() const {
    return log_.active() && log_.bytes() >= most_logged_ && !snapshots_.active();
  }
  void log_sample(uint16_t table, uint32_t batch);
  void log_session(const Session &session);
  // Refuse a change that the log cannot take.
  bool refuse_change(const Header &header, FrameBuffer *reply, uint64_t now_ms, Outcome *outcome);
  Status recover_snapshot(std::vector<std::string> *notes, std::string *why);
  Status recover_segment(const std::string &path, std::string *why);
  bool recover_records(const Block &block);
  bool recover_request(const std::byte *bytes, size_t count);
  bool recover_session(ByteReader *reader);
  Session *session_of(uint64_t token);
  Outcome do_push(Peer &peer, const Frame &frame, FrameBuffer *reply);
  Outcome answer_sample(Peer &peer, const Header &header, const SampleRequest &request,
                        FrameBuffer *reply, uint64_t now_ms);
  Outcome do_sample(Peer &peer, const Header &header, const SampleRequest &request,
                    FrameBuffer *reply);
  bool continue_sampling(Sampling *sampling);
  Outcome finish_sampling(const Sampling &sampling, FrameBuffer *reply);
  void serve_samplings(uint64_t now_ms, const Deliver &deliver);
  Status park(Waiting waiting, WaitingQueue *queue);
  void unpark(WaitingQueue::iterator waiting);
  bool serve_first(WaitingQueue *queue, bool is_push, uint64_t now_ms, const Deliver &deliver);
  void expire(uint64_t now_ms, const Deliver &deliver);
  void drop_waiting(Peer &peer);

  Settings settings_;
  Statistics statistics_;
  Latencies latencies_;
  SlowRequests slow_;
  Sessions sessions_;
  std::vector<std::unique_ptr<Table>> tables_;
  std::vector<std::vector<size_t>> column_bytes_;  // of each table
  std::deque<Queues> queues_;                      // of each table
  std::vector<uint64_t> used_ms_;                  // when somebody asked for each table last
  std::map<std::string, uint64_t> fetched_ms_;     // and for each name in the mailbox
  uint64_t table_bytes_ = 0, waiting_bytes_ = 0;
  bool draining_ = false;
  Mailbox mailbox_;
  Snapshots snapshots_;
  Log log_;
  uint64_t serial_ = 0;       // of the newest snapshot that was begun, or of the log's segment
  uint64_t most_logged_ = 0;  // bytes, until a snapshot is begun
  uint64_t opened_ = 0;       // records of the log up to that of the newest table
  uint64_t mend_ms_ = 0;      // when a snapshot may next be begun as the log has failed
  std::vector<std::pair<Peer *, Header>> for_snapshot_;  // requests that wait for its end
  std::vector<Opening> for_log_;
  std::multimap<uint64_t, WaitingQueue::iterator> deadlines_;  // in ms, of all that are parked
  uint64_t came_us_ = 0;  // when the request that is handled now came
  bool changed_ = false;  // something that waits may go on
  std::deque<std::unique_ptr<Sampling>> samplings_;
  ServiceTime service_time_;
  // Scratch of one call, kept to reuse its memory.
  Layout layout_;
  Push push_;
  std::vector<size_t> offsets_;
  Sampling sampling_;
  FrameBuffer late_;
};

}  // namespace accel_rl::replay

#endif
